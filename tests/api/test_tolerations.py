"""Tolerations and taints: which covers which."""

from __future__ import annotations

import pytest

from placewright.api.objects import Taint, Toleration
from placewright.api.tolerations import first_untolerated, intolerable_preferences, tolerates

TAINT = Taint(key="k", value="v", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "covers"),
    [
        (Toleration(key="k", operator="Equal", value="v", effect="NoSchedule"), True),
        (Toleration(key="k", value="v"), True),
        (Toleration(key="k", operator="Exists"), True),
        (Toleration(key="k", operator="Exists", value="other"), True),
        (Toleration(operator="Exists"), True),
        (Toleration(operator="Exists", effect="NoSchedule"), True),
        (Toleration(operator="Exists", effect="NoExecute"), False),
        (Toleration(key="other", operator="Exists"), False),
        (Toleration(key="k", value="other"), False),
        (Toleration(key="k"), False),
        (Toleration(value="v"), True),
        (Toleration(key="k", operator="Gt", value="v"), False),
        (Toleration(key="k", operator="exists"), False),
    ],
)
def test_key_value_and_effect_must_fit_where_they_are_given(toleration: Toleration, covers: bool) -> None:
    assert tolerates(toleration, TAINT) is covers


def test_the_first_hard_taint_that_nothing_covers_is_found() -> None:
    soft = Taint(key="s", effect="PreferNoSchedule")
    evict = Taint(key="e", effect="NoExecute")
    tolerations = (Toleration(key="k", operator="Exists"),)
    assert first_untolerated((soft, TAINT, evict), tolerations) == evict
    assert first_untolerated((soft, TAINT), tolerations) is None
    assert first_untolerated((), ()) is None


def test_soft_taints_are_covered_only_by_tolerations_of_soft_or_any_effect() -> None:
    taints = (Taint(key="a", effect="PreferNoSchedule"), Taint(key="b", effect="PreferNoSchedule"), TAINT)
    hard = Toleration(key="a", operator="Exists", effect="NoSchedule")
    anyway = Toleration(key="a", operator="Exists")
    soft = Toleration(key="b", operator="Exists", effect="PreferNoSchedule")
    assert intolerable_preferences(taints, (hard,)) == 2
    assert intolerable_preferences(taints, (anyway,)) == 1
    assert intolerable_preferences(taints, (anyway, soft)) == 0


@pytest.mark.parametrize(
    ("operator", "says", "of_taint", "covers"),
    [
        ("Gt", "5", "6", True),
        ("Gt", "5", "5", False),
        ("Gt", "-3", "-2", True),
        ("Gt", "5", "40", True),  # as numbers, not as text
        ("Lt", "5", "4", True),
        ("Lt", "5", "5", False),
        ("Lt", "0", "-9223372036854775808", True),
        ("Lt", "0", "-9223372036854775809", False),  # more than 64 bits
        ("Gt", "5", "9223372036854775807", True),
        ("Gt", "5", "9223372036854775808", False),
        ("Gt", "5", "06", False),
        ("Gt", "05", "6", False),
        ("Gt", "5", "+6", False),
        ("Gt", "5", "6.5", False),
        ("Gt", "5", "6 ", False),
        ("Gt", "5", "٦", False),  # a digit, but not of those
        ("Gt", "-1", "-0", False),
        ("Gt", "5", "", False),
        ("Gt", "", "6", False),
        ("gt", "5", "6", False),
    ],
)
def test_gt_and_lt_compare_whole_numbers_and_nothing_else(operator: str, says: str, of_taint: str, covers: bool) -> None:
    taint = Taint(key="k", value=of_taint, effect="NoSchedule")
    assert tolerates(Toleration(key="k", operator=operator, value=says), taint) is covers
    assert tolerates(Toleration(key="k", operator=operator, value=says, effect="NoExecute"), taint) is False
    assert tolerates(Toleration(key="other", operator=operator, value=says), taint) is False


def test_a_comparison_that_holds_counts_for_hard_and_for_soft_taints() -> None:
    taints = (Taint(key="k", value="7", effect="NoSchedule"), Taint(key="k", value="7", effect="PreferNoSchedule"))
    above, below = (Toleration(key="k", operator=operator, value="5") for operator in ("Gt", "Lt"))
    assert (first_untolerated(taints, (above,)), intolerable_preferences(taints, (above,))) == (None, 0)
    assert (first_untolerated(taints, (below,)), intolerable_preferences(taints, (below,))) == (taints[0], 1)
