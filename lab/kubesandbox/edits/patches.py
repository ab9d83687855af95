"""The four patch formats behind one function."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubesandbox.edits.apply import server_side_apply
from kubesandbox.edits.jsonpatch import apply_json_patch
from kubesandbox.edits.shapes import Object, PatchError, shape_of
from kubesandbox.edits.strategic import strategic_merge

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True)
class PatchTerms:
    """The object and the writer of a patch.

    Attributes:
        kind: kind of the object.
        now: RFC 3339 time.
        field_manager: name of the writer, which apply patches need.
        force: True to take over fields of other managers by an apply patch.
        schema: openAPIV3Schema of a custom resource; None for a built-in kind.
        subresource: subresource that is written; empty for the object.
    """

    kind: str
    now: str
    field_manager: str | None = None
    force: bool = False
    schema: Mapping[str, Any] | None = None
    subresource: str = ""


def apply_patch(current: Object | None, patch: object, content_type: str, terms: PatchTerms) -> Object:
    """Apply the decoded body of a patch. Only an apply patch may create an object (`current` None).

    The result shares nothing with `current`. An apply patch brings `managedFields` up to date itself. After other patches, the caller
    calls `track_update` with the object that is stored. Raises `PatchError`.
    """
    if content_type == APPLY_PATCH:
        return _apply(current, patch, terms)
    if current is None:
        raise PatchError("only an apply patch can create an object", code=404)
    if content_type == JSON_PATCH:
        return _json(current, patch)
    custom = terms.schema is not None
    if content_type not in (MERGE_PATCH, STRATEGIC_PATCH) or (content_type == STRATEGIC_PATCH and custom):
        raise PatchError(_unsupported(custom=custom), code=415)
    if not isinstance(patch, dict):
        raise PatchError(f"a patch is an object, found {type(patch).__name__}", code=400)
    if content_type == MERGE_PATCH:
        merged: Object = merge(copy.deepcopy(current), copy.deepcopy(patch))
        return merged
    return strategic_merge(copy.deepcopy(current), patch, shape_of(terms.kind))


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


def _json(current: Object, patch: object) -> Object:
    result = apply_json_patch(current, patch)
    if not isinstance(result, dict):
        raise PatchError("the patch leaves no object")
    return result


def _apply(current: Object | None, patch: object, terms: PatchTerms) -> Object:
    if not terms.field_manager:
        raise PatchError('PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch')
    if not isinstance(patch, dict) or not patch.get("apiVersion") or not patch.get("kind"):
        raise PatchError("invalid object type: an apply patch is an object with apiVersion and kind", code=400)
    if not isinstance(patch.get("metadata", {}), dict):
        raise PatchError("failed to create typed patch object: .metadata: expected map", code=500)
    if patch.get("metadata", {}).get("managedFields"):
        raise PatchError("metadata.managedFields must be nil", code=400)
    try:
        return server_side_apply(
            current,
            patch,
            shape=shape_of(terms.kind, terms.schema),
            field_manager=terms.field_manager,
            force=terms.force,
            now=terms.now,
            subresource=terms.subresource,
        )
    except ValueError as error:
        raise PatchError(f"metadata.managedFields: {error}") from error


def _unsupported(*, custom: bool) -> str:
    formats = [JSON_PATCH, MERGE_PATCH, *([] if custom else [STRATEGIC_PATCH]), APPLY_PATCH]
    return "the body of the request was in an unknown format - accepted media types include: " + ", ".join(formats)
