"""Counts without zeros, and groups without empty groups."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placewright.api.counts import add_count, take_out
from randomcases import cases

STEPS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(-2, 2)))


@settings(max_examples=cases(100))
@given(STEPS)
def test_counts_are_the_sums_and_a_sum_of_0_is_not_kept(steps: list[tuple[str, int]]) -> None:
    counts, model = dict[str, int](), Counter[str]()
    for key, delta in steps:
        model[key] += delta
        assert add_count(counts, key, delta) == model[key]
        assert counts == {each: count for each, count in model.items() if count}


def test_a_group_goes_with_its_last_item_and_says_so() -> None:
    groups = {"web": {"a": None, "b": None}, "db": {"a": None}}
    assert not take_out(groups, "web", "a")
    assert groups == {"web": {"b": None}, "db": {"a": None}}
    assert take_out(groups, "web", "b")
    assert groups == {"db": {"a": None}}


@pytest.mark.parametrize(("key", "item"), [("none", "a"), ("db", "none")])
def test_an_item_that_is_in_no_group_is_an_error_and_changes_nothing(key: str, item: str) -> None:
    groups = {"db": {"a": None}}
    with pytest.raises(KeyError):
        take_out(groups, key, item)
    assert groups == {"db": {"a": None}}
