"""The result of a run for a person: spec by spec, failures last, and a line with the numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from placewright_lab.controlplane.conformance.specs import SpecOutcome, SpecVerdict

_ORDER: Final = (SpecVerdict.PASSED, SpecVerdict.SKIPPED, SpecVerdict.LEFT_OUT, SpecVerdict.FAILED)
_LONGEST_WHY: Final = 500


def lines(outcomes: Sequence[SpecOutcome]) -> Iterator[str]:
    """What to print."""
    for verdict in _ORDER:
        for each in sorted(outcomes, key=lambda outcome: outcome.spec):
            if each.verdict is verdict:
                yield f"{verdict:<9}{_seconds(each)}  {each.spec}"
                if each.why:
                    yield f"{'':20}{each.why[:_LONGEST_WHY]}"
    yield numbers(outcomes)


def numbers(outcomes: Sequence[SpecOutcome]) -> str:
    """Such as "28 passed, 1 failed, 2 left out"; what did not happen is not mentioned, passes always are."""
    counts = Counter(each.verdict for each in outcomes)
    order = (SpecVerdict.PASSED, SpecVerdict.FAILED, SpecVerdict.SKIPPED, SpecVerdict.LEFT_OUT)
    words = {SpecVerdict.SKIPPED: "skipped by themselves"}
    return ", ".join(f"{counts[each]} {words.get(each, each)}" for each in order if counts[each] or each is SpecVerdict.PASSED)


def _seconds(outcome: SpecOutcome) -> str:
    return f"{outcome.seconds:7.1f} s" if outcome.verdict in (SpecVerdict.PASSED, SpecVerdict.FAILED) else " " * 9
