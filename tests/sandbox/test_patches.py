"""All four patch formats behind one call: what each answers to content of any shape."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placewright.sandbox.patches import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
    PatchConflict,
    PatchInvalid,
    PatchTerms,
    apply_patch,
)

NAMES = ["metadata", "spec", "status", "labels", "finalizers", "containers", "name", "ports", "env", "containerPort"]
DIRECTIVES = ["$patch", "$retainKeys", "$setElementOrder/containers", "$deleteFromPrimitiveList/finalizers"]
leaves = st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["a", "delete", "replace"])
values = st.recursive(
    leaves,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from(NAMES + DIRECTIVES), below, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(st.sampled_from(NAMES), values, max_size=4)
TERMS = PatchTerms("Pod", "t1", "somebody")


def with_kind(content: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", **content}


@settings(max_examples=150, deadline=None)
@given(current=objects, patch=values, format_=st.sampled_from([JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH]))
def test_any_content_is_applied_or_refused_and_the_original_stays(current: Any, patch: Any, format_: str) -> None:
    current = with_kind(current)
    current["metadata"] = {
        "name": "p",
        **(current.get("metadata") if isinstance(current.get("metadata"), dict) else {}),
    }
    before = copy.deepcopy(current)
    sent = with_kind(patch) if format_ == APPLY_PATCH and isinstance(patch, dict) else patch
    try:
        result = apply_patch(current, sent, format_, TERMS)
    except (PatchConflict, PatchInvalid):
        pass
    else:
        assert isinstance(result, dict)
    assert current == before


@pytest.mark.parametrize(
    ("content", "format_", "code"),
    [
        ({"op": "add"}, JSON_PATCH, 400),
        ([{"op": "test", "path": "/kind", "value": "x"}], JSON_PATCH, 422),
        ([{"op": "replace", "path": "", "value": 1}], JSON_PATCH, 422),
        ([], MERGE_PATCH, 400),
        ("text", STRATEGIC_PATCH, 400),
        ({"spec": {"containers": [{}]}}, STRATEGIC_PATCH, 422),
        ({}, APPLY_PATCH, 400),
        (None, APPLY_PATCH, 400),
        (with_kind({"metadata": 1}), APPLY_PATCH, 400),
        ({}, "application/json", 415),
    ],
)
def test_each_refusal_has_its_code(content: Any, format_: str, code: int) -> None:
    with pytest.raises(PatchInvalid) as refused:
        apply_patch(with_kind({"metadata": {}, "spec": {}}), content, format_, TERMS)
    assert refused.value.code == code


def test_an_apply_patch_without_a_manager_is_refused() -> None:
    with pytest.raises(PatchInvalid, match="fieldManager: Required value"):
        apply_patch(None, with_kind({}), APPLY_PATCH, PatchTerms("Pod", "t1"))


def test_strategic_patches_are_not_for_custom_resources() -> None:
    with pytest.raises(PatchInvalid) as refused:
        apply_patch({"kind": "Box"}, {}, STRATEGIC_PATCH, PatchTerms("Box", "t1", schema={"type": "object"}))
    assert refused.value.code == 415
    assert "strategic" not in str(refused.value)


def test_only_an_apply_patch_creates() -> None:
    with pytest.raises(PatchInvalid) as refused:
        apply_patch(None, {}, MERGE_PATCH, TERMS)
    assert refused.value.code == 404
    assert apply_patch(None, with_kind({"metadata": {"name": "p"}}), APPLY_PATCH, TERMS)["metadata"]["name"] == "p"
