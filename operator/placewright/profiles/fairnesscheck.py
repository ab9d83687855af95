"""Checks `spec.fairness`: the kind of tenant, the label's key, and the weights.

The API server holds the same by the definition; API servers before 1.25 know no rules across fields, and files meet no API server.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from placewright.api.bad_input import in_json
from placewright.api.fairness import LABEL, LABEL_KEY, SHARES, TENANTS_BY, Fairness
from placewright.api.profilelimits import MAX_LABEL_KEY_LENGTH, MAX_TENANT_WEIGHT, MAX_TENANT_WEIGHTS
from placewright.profiles.problem import Problem, did_you_mean

_PATH: Final = "spec.fairness"
_KEY: Final = re.compile(LABEL_KEY)


def check_fairness(fairness: Fairness | None) -> Iterator[Problem]:
    """Find the problems of `spec.fairness`.

    Args:
        fairness: of the profile; None where it says nothing.

    Yields:
        Problems, in the order of the fields.
    """
    if fairness is None:
        return
    yield from _one_of(f"{_PATH}.by", fairness.by, TENANTS_BY)
    yield from _check_label(fairness)
    yield from _one_of(f"{_PATH}.share", fairness.share, SHARES)
    yield from _check_weights(fairness.weights or {})


def _one_of(path: str, found: str, allowed: tuple[str, ...]) -> Iterator[Problem]:
    if found not in allowed:
        yield Problem(path, in_json(found), f"{', '.join(allowed[:-1])} or {allowed[-1]}{did_you_mean(found, allowed)}")


def _check_label(fairness: Fairness) -> Iterator[Problem]:
    path, key = f"{_PATH}.label", fairness.label
    if fairness.by != LABEL:
        if key is not None:
            yield Problem(path, in_json(key), f"nothing, as {_PATH}.by is {fairness.by}")
    elif not key:
        yield Problem(path, "nothing", f"the key of a label of the pods, as {_PATH}.by is {LABEL}")
    elif len(key) > MAX_LABEL_KEY_LENGTH or not _KEY.fullmatch(key):
        yield Problem(path, in_json(key), "the key of a label, such as team or example.com/team")


def _check_weights(weights: Mapping[str, int]) -> Iterator[Problem]:
    if len(weights) > MAX_TENANT_WEIGHTS:
        yield Problem(f"{_PATH}.weights", f"{len(weights)} of them", f"at most {MAX_TENANT_WEIGHTS}")
        return
    for tenant, weight in weights.items():
        if not 1 <= weight <= MAX_TENANT_WEIGHT:
            yield Problem(f"{_PATH}.weights.{tenant}", str(weight), f"1 to {MAX_TENANT_WEIGHT}")
