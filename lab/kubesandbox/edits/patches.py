"""The four patch formats behind one function."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubesandbox.edits.apply import Manager, server_side_apply
from kubesandbox.edits.jsonpatch import apply_json_patch
from kubesandbox.edits.shapes import shape_of
from kubesandbox.edits.strategic import strategic_merge
from kubesandbox.resources import Object
from kubesandbox.status import bad_request, unprocessable, unspecific, unsupported_media_type

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
PATCHES: Final = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)


@dataclass(frozen=True, slots=True)
class PatchRequest:
    """A patch: decoded `content`, `content_type` without parameters, and `force` for server-side apply."""

    content: object
    content_type: str
    force: bool = False


def apply_patch(current: Object | None, patch: PatchRequest, manager: Manager, now: str, schema: Mapping[str, Any] | None = None) -> Object:
    """Apply a patch. Only an apply patch may create an object (`current` None).

    `manager`, whose name is empty if the client gave none, and the RFC 3339 time `now` are for apply patches. `schema` is the
    openAPIV3Schema of a custom resource. The result shares nothing with `current`. An apply patch brings `managedFields` up to date itself.
    After other patches, the caller calls `track_update` with the object that is stored. Raises ApiError.
    """
    content = patch.content
    if patch.content_type == APPLY_PATCH:
        return _apply(current, patch, manager, now, schema)
    assert current is not None, "the caller knows that there is nothing to patch"
    if patch.content_type == JSON_PATCH:
        result = apply_json_patch(current, content)
        if not isinstance(result, dict):
            raise unprocessable("the patch leaves no object")
        return result
    if patch.content_type == STRATEGIC_PATCH and schema is not None:
        raise unsupported_media_type(patch.content_type, [each for each in PATCHES if each != STRATEGIC_PATCH])
    if not isinstance(content, dict):
        raise bad_request(f"a patch is an object, found {type(content).__name__}")
    if patch.content_type == MERGE_PATCH:
        merged: Object = merge(copy.deepcopy(current), copy.deepcopy(content))
        return merged
    return strategic_merge(copy.deepcopy(current), content, shape_of(str(current["kind"])))


def merge(value: Any, patch: Any) -> Any:
    """Apply a JSON merge patch (RFC 7386): null removes, objects merge, others replace. `value` may change and share parts of `patch`."""
    if not isinstance(patch, dict):
        return patch
    result: Object = value if isinstance(value, dict) else {}
    for key, wanted in patch.items():
        if wanted is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), wanted)
    return result


def _apply(current: Object | None, patch: PatchRequest, manager: Manager, now: str, schema: Mapping[str, Any] | None) -> Object:
    content = patch.content
    if not manager.name:
        raise unprocessable('PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch')
    if not isinstance(content, dict) or not content.get("apiVersion") or not content.get("kind"):
        raise bad_request("invalid object type: an apply patch is an object with apiVersion and kind")
    if not isinstance(content.get("metadata", {}), dict):
        raise unspecific("failed to create typed patch object: .metadata: expected map")
    if content.get("metadata", {}).get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    try:
        return server_side_apply(current, content, shape_of(str(content["kind"]), schema), manager, now, force=patch.force)
    except ValueError as error:
        raise unprocessable(f"metadata.managedFields: {error}") from error
