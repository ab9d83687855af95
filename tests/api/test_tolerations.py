"""Tolerations and taints: which covers which."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placewright.api.objects import Taint, Toleration
from placewright.api.tolerations import (
    HARD_EFFECTS,
    TolerationSet,
    first_untolerated,
    integer,
    tolerated,
    tolerates,
)

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
        (Toleration(key="k", operator="In", value="v"), False),
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
    assert TolerationSet((hard,)).intolerable_preferences(taints) == 2
    assert TolerationSet((anyway,)).intolerable_preferences(taints) == 1
    assert TolerationSet((anyway, soft)).intolerable_preferences(taints) == 0


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
    assert (first_untolerated(taints, (above,)), TolerationSet((above,)).intolerable_preferences(taints)) == (None, 0)
    assert (first_untolerated(taints, (below,)), TolerationSet((below,)).intolerable_preferences(taints)) == (taints[0], 1)


# --- the rules written out again ---------------------------------------------------------------------------------------------------

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
TAINTS = st.builds(Taint, key=st.sampled_from("ab"), value=st.sampled_from(["", "x", "3", "7"]), effect=st.sampled_from(EFFECTS))
TOLERATIONS = st.builds(
    Toleration, key=st.sampled_from(["", "a", "b"]), operator=st.sampled_from(["", "Equal", "Exists", "Gt", "Lt", "In"]),
    value=st.sampled_from(["", "x", "5"]), effect=st.sampled_from(["", *EFFECTS]),
)  # fmt: skip


def covers(toleration: Toleration, taint: Taint) -> bool:
    """The table of `Toleration.ToleratesTaint`, a rule a line."""
    about = toleration.key in ("", taint.key) and toleration.effect in ("", taint.effect)
    numbers = taint.value.isdigit() and toleration.value.isdigit()
    how = {
        "": toleration.value == taint.value,
        "Equal": toleration.value == taint.value,
        "Exists": True,
        "Gt": numbers and int(taint.value) > int(toleration.value),
        "Lt": numbers and int(taint.value) < int(toleration.value),
    }
    return about and how.get(toleration.operator, False)


@given(st.lists(TAINTS, max_size=3), st.lists(TOLERATIONS, max_size=20))
def test_whatever_repels_and_whatever_is_tolerated_the_rules_decide(taints: list[Taint], tolerations: list[Toleration]) -> None:
    repelled = [taint for taint in taints if not any(covers(each, taint) for each in tolerations)]
    assert [taint for taint in taints if not tolerated(taint, tolerations)] == repelled
    hard = [taint for taint in repelled if taint.effect != "PreferNoSchedule"]
    assert first_untolerated(taints, tolerations) == (hard[0] if hard else None)
    assert TolerationSet(tolerations).intolerable_preferences(taints) == len(repelled) - len(hard)
    assert all(tolerates(each, taint) is covers(each, taint) for each in tolerations for taint in taints)


def test_no_execute_and_no_schedule_keep_pods_off_and_other_effects_do_not() -> None:
    assert frozenset({"NoSchedule", "NoExecute"}) == HARD_EFFECTS
    for effect in ("", "PreferNoSchedule", "Evict"):
        assert first_untolerated((Taint(key="k", effect=effect),), ()) is None
    assert TolerationSet(()).intolerable_preferences((Taint(key="k", effect=""), Taint(key="k", effect="Evict"))) == 0


def test_the_same_soft_taint_twice_is_two() -> None:
    soft = Taint(key="k", effect="PreferNoSchedule")
    assert TolerationSet(()).intolerable_preferences((soft, soft)) == 2
    assert TolerationSet((Toleration(operator="Exists", effect="NoExecute"),)).intolerable_preferences((soft, soft)) == 2


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0), ("7", 7), ("-7", -7), ("10", 10), (str(2**63 - 1), 2**63 - 1), (str(-(2**63)), -(2**63)),
        (str(2**63), None), (str(-(2**63) - 1), None), ("9" * 20, None), ("-0", None), ("00", None), ("07", None), ("+7", None),
        ("7.0", None), ("", None), (None, None), ("-", None), (" 7", None), ("7\n", None), ("1_0", None), ("٧", None), ("0x7", None),
    ],
)  # fmt: skip
def test_a_number_is_written_as_a_decimal_integer_is(text: str | None, number: int | None) -> None:
    assert integer(text) == number


@given(st.integers(-(2**64), 2**64))
def test_every_number_of_64_bits_is_one(number: int) -> None:
    assert integer(str(number)) == (number if -(2**63) <= number < 2**63 else None)
