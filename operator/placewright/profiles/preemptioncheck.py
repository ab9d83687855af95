"""Checks `spec.preemption` of a profile: known words, a selector that an API server would take, and numbers that fit together.

The API server holds the same rules by the definition; API servers before 1.25 depend on this check.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from placewright.api.bad_input import in_json
from placewright.api.preemption import BEST_EFFORT, LOWER_PRIORITY, NEVER, STRICT, PreemptionSpec
from placewright.profiles.podscheck import check_label_selector
from placewright.profiles.problem import Problem, did_you_mean

_PATH: Final = "spec.preemption"


def check_preemption(preemption: PreemptionSpec | None) -> Iterator[Problem]:
    """Check the rules of preemption; their bounds are checked with those of all numbers.

    Args:
        preemption: of the profile; None where it has none.

    Yields:
        Problems, in the order of the document.
    """
    if preemption is None:
        return
    yield from _check_word("policy", preemption.policy, (LOWER_PRIORITY, NEVER))
    yield from _check_word("disruptionBudgets", preemption.disruption_budgets, (BEST_EFFORT, STRICT))
    most, in_a_minute = preemption.max_victims, preemption.max_evictions_per_minute
    if most is not None and in_a_minute is not None and most > in_a_minute:
        yield Problem(f"{_PATH}.maxVictims", str(most), f"at most maxEvictionsPerMinute ({in_a_minute}): no minute has room for more")
    yield from check_label_selector(f"{_PATH}.protect", preemption.protect)


def _check_word(field: str, found: str, allowed: tuple[str, str]) -> Iterator[Problem]:
    if found not in allowed:
        yield Problem(f"{_PATH}.{field}", in_json(found), f"{' or '.join(allowed)}{did_you_mean(found, allowed)}")
