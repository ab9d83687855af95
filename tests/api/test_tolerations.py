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
