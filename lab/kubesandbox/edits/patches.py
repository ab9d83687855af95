"""The four patch formats behind one call, and the record of who wrote which field."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubesandbox.edits.apply import ApplyConflict, server_side_apply, track_update
from kubesandbox.edits.jsonpatch import JsonPatchError, apply_json_patch
from kubesandbox.edits.shapes import Object, shape_of
from kubesandbox.edits.strategic import StrategicPatchError, strategic_merge

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"

__all__ = [
    "APPLY_PATCH",
    "JSON_PATCH",
    "MERGE_PATCH",
    "STRATEGIC_PATCH",
    "PatchConflict",
    "PatchInvalid",
    "PatchTerms",
    "apply_patch",
    "track_update",
]


class PatchConflict(Exception):
    """Server-side apply met fields of other managers: 409 with `causes` for the Status' details."""

    def __init__(self, message: str, causes: list[dict[str, str]]) -> None:
        super().__init__(message)
        self.causes = causes


class PatchInvalid(Exception):
    """The patch cannot be applied; `code` is 400 (unreadable), 413 (too long), 415 (unknown format), 422 (does not fit) or 500 (none)."""

    def __init__(self, message: str, *, code: int = 422) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class PatchTerms:
    """The object and the writer of a patch.

    `schema` is the openAPIV3Schema of a custom resource, None for a built-in kind; `now` is an RFC 3339 time; `force`
    and `field_manager` matter to apply patches only, which cannot do without the latter.
    """

    kind: str
    now: str
    field_manager: str | None = None
    force: bool = False
    schema: Mapping[str, Any] | None = None
    subresource: str = ""


def apply_patch(current: Object | None, patch: object, content_type: str, terms: PatchTerms) -> Object:
    """Apply a patch; the result shares nothing with `current`. Only an apply patch may create (`current` None).

    `patch` is the decoded body. Apply patches bring `managedFields` up to date themselves, for the others call
    `track_update` with what is finally stored. Raises `PatchConflict` and `PatchInvalid`.
    """
    if content_type == APPLY_PATCH:
        return _apply(current, patch, terms)
    if current is None:
        raise PatchInvalid("only an apply patch can create an object", code=404)
    if content_type == JSON_PATCH:
        return _json(current, patch)
    custom = terms.schema is not None
    if content_type not in (MERGE_PATCH, STRATEGIC_PATCH) or (content_type == STRATEGIC_PATCH and custom):
        raise PatchInvalid(_unsupported(custom=custom), code=415)
    if not isinstance(patch, dict):
        raise PatchInvalid(f"a patch is an object, found {type(patch).__name__}", code=400)
    if content_type == MERGE_PATCH:
        merged: Object = merge(copy.deepcopy(current), patch)
        return merged
    try:
        return strategic_merge(copy.deepcopy(current), patch, shape_of(terms.kind))
    except StrategicPatchError as error:
        raise PatchInvalid(str(error), code=error.code) from error


def merge(value: Any, patch: Any) -> Any:
    """JSON merge patch (RFC 7386): null removes, objects merge, all else replaces. `value` may be changed."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result: Object = value if isinstance(value, dict) else {}
    for key, wanted in patch.items():
        if wanted is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), wanted)
    return result


def _json(current: Object, patch: object) -> Object:
    try:
        result = apply_json_patch(current, patch)
    except JsonPatchError as error:
        raise PatchInvalid(str(error), code=error.code) from error
    if not isinstance(result, dict):
        raise PatchInvalid("the patch leaves no object")
    return result


def _apply(current: Object | None, patch: object, terms: PatchTerms) -> Object:
    if not terms.field_manager:
        raise PatchInvalid('PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch')
    if not isinstance(patch, dict) or not patch.get("apiVersion") or not patch.get("kind"):
        raise PatchInvalid("invalid object type: an apply patch is an object with apiVersion and kind", code=400)
    if not isinstance(patch.get("metadata", {}), dict):
        raise PatchInvalid("failed to create typed patch object: .metadata: expected map", code=500)
    if patch.get("metadata", {}).get("managedFields"):
        raise PatchInvalid("metadata.managedFields must be nil", code=400)
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
    except ApplyConflict as error:
        raise PatchConflict(str(error), error.causes) from error
    except ValueError as error:
        raise PatchInvalid(f"metadata.managedFields: {error}") from error


def _unsupported(*, custom: bool) -> str:
    formats = [JSON_PATCH, MERGE_PATCH, *([] if custom else [STRATEGIC_PATCH]), APPLY_PATCH]
    return "the body of the request was in an unknown format - accepted media types include: " + ", ".join(formats)
