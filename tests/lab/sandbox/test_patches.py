"""All four patch formats behind one call take content of any shape; what each makes of it is asked in tests/contract."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kubesandbox.edits.apply import APPLY, Manager
from kubesandbox.edits.patches import APPLY_PATCH, PATCHES, PatchRequest, apply_patch
from kubesandbox.status import ApiError

NAMES = ["metadata", "spec", "status", "labels", "finalizers", "containers", "name", "ports", "env", "containerPort"]
DIRECTIVES = ["$patch", "$retainKeys", "$setElementOrder/containers", "$deleteFromPrimitiveList/finalizers"]
leaves = st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["a", "delete", "replace"])
values = st.recursive(
    leaves,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from(NAMES + DIRECTIVES), below, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(st.sampled_from(NAMES), values, max_size=4)
SOMEBODY = Manager("somebody", APPLY, "v1")


def with_kind(content: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", **content}


@settings(max_examples=150)
@given(current=objects, patch=values, format_=st.sampled_from(PATCHES))
def test_any_content_is_applied_or_refused_and_the_original_stays(current: Any, patch: Any, format_: str) -> None:
    current = with_kind(current)
    current["metadata"] = {
        "name": "p",
        **(current.get("metadata") if isinstance(current.get("metadata"), dict) else {}),
    }
    before = copy.deepcopy(current)
    sent = with_kind(patch) if format_ == APPLY_PATCH and isinstance(patch, dict) else patch
    try:
        result = apply_patch(current, PatchRequest(sent, format_), SOMEBODY, "t1")
    except ApiError:
        pass
    else:
        assert isinstance(result, dict)
    assert current == before
