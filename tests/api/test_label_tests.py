"""Combined tests of labels say what the expressions say one by one."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from placewright.api.labeltests import label_tests
from placewright.api.profilepods import LabelSelectorRequirement, ProfileLabelSelector
from placewright.api.selectors import CompiledRequirement
from randomcases import cases

VALUES = ("x", "y", "z")
#: `other` stands for all values that no expression names.
ANY_VALUE = (None, *VALUES, "other")
REQUIREMENTS = st.builds(
    CompiledRequirement,
    st.sampled_from("ab"),
    st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist")),
    st.frozensets(st.sampled_from(VALUES), min_size=1),
)


@settings(max_examples=cases(300))
@given(st.lists(REQUIREMENTS, max_size=6))
def test_a_value_passes_if_all_expressions_about_its_key_match_it(expressions: list[CompiledRequirement]) -> None:
    tests = {test.key: test for test in label_tests(expressions)}
    assert tests.keys() == {each.key for each in expressions}
    for key, test in tests.items():
        matching = [value for value in ANY_VALUE if all(each.matches(value) for each in expressions if each.key == key)]
        assert [value for value in ANY_VALUE if test.passes(value)] == matching
        assert test.possible == bool(matching)


def test_a_selector_in_a_profile_has_a_requirement_for_each_label_and_expression() -> None:
    listed = LabelSelectorRequirement(key="tier", operator="NotIn", values=["db"])
    selector = ProfileLabelSelector(match_labels={"app": "web"}, match_expressions=[listed])
    assert selector.expressions == (
        CompiledRequirement("app", "In", frozenset({"web"})),
        CompiledRequirement("tier", "NotIn", frozenset({"db"})),
    )


def test_an_operator_that_no_api_server_stores_matches_no_label() -> None:
    for value in (*ANY_VALUE, "5", "-5"):
        assert not LabelSelectorRequirement(key="a", operator="Near", values=["x"]).compiled.matches(value)
