"""The rules of writing: create, replace, patch and delete, for all types.

A write reads the current object, computes the new one and stores it, all without waiting. So it cannot lose a race, and optimistic
concurrency is for the clients. `Admission` has the differences between types.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec

from kubesandbox.edits.apply import APPLY, UPDATE, Manager, track_update
from kubesandbox.edits.patches import APPLY_PATCH, PatchRequest, apply_patch
from kubesandbox.kinds.admission import Admission
from kubesandbox.resources import DEFINITIONS, NAMESPACES, ResourceRegistry, ResourceType, presented, to_stored
from kubesandbox.status import (
    ApiError,
    Object,
    already_exists,
    bad_request,
    details_of,
    forbidden,
    invalid,
    not_found,
)
from kubesandbox.storage import metadata as meta
from kubesandbox.storage.store import Store, Stored

#: Types whose replacement needs the current resourceVersion, like that of custom types.
_VERSION_REQUIRED: Final = frozenset(
    {
        ("coordination.k8s.io", "leases"),
        ("policy", "poddisruptionbudgets"),
        ("apiextensions.k8s.io", "customresourcedefinitions"),
    }
)

#: Types with frequent writes. Owners of their fields are recorded for clients that name themselves (fieldManager). They are
#: also recorded from an object's first server-side apply on. No client reads them before, and they would double the cost.
_BUSY: Final = frozenset({("", "pods"), ("", "events"), ("coordination.k8s.io", "leases"), ("resource.k8s.io", "resourceclaims")})

#: Groups of built-in types whose status writes change nothing else, not even finalizers, like those of custom types.
_STATUS_ALONE: Final = frozenset({"resource.k8s.io"})

Guard = Callable[[ResourceType, Object, Object], None]
_decode = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The options of a write.

    Attributes:
        dry_run: True to check everything and store nothing.
        manager: name of the writer; empty for the server itself.
        named: True if the client itself gave that name.
        strict: True to refuse fields that the schema of a custom type does not know.
        guard: last check, of the type and the object before and after; it raises ApiError.
    """

    dry_run: bool = False
    manager: str = ""
    subresource: str = ""
    named: bool = False
    strict: bool = False
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """`grace` in seconds (None for the type's default). `uid` and `version` are preconditions, and `orphan` keeps dependents."""

    grace: int | None = None
    uid: str | None = None
    version: str | None = None
    orphan: bool = False
    dry_run: bool = False


@dataclass
class Writes:
    """All writes of one server. `orphaned` holds uids whose dependents must outlive them."""

    store: Store
    registry: ResourceRegistry
    identity: meta.Identity
    admission: Admission
    orphaned: set[str] = field(default_factory=set)

    def create(self, resource: ResourceType, namespace: str, sent: object, options: WriteOptions | None = None) -> Stored:
        """Store a new object. Raises ApiError 400, 403, 404 (no such namespace), 409 or 422."""
        options = options or WriteOptions()
        new = meta.check_object(resource, namespace, sent)
        self._check_namespace(resource, namespace, new)
        name = meta.begin(resource, new, self.identity)
        if self.store.get(resource.key, namespace, name) is not None:
            raise already_exists(resource, name)
        self._refuse_unknown_fields(resource, new, options)
        new = to_stored(resource, self.admission.on_create(resource, new, self.identity.now()))
        if self._is_tracked(resource, options):
            self._track(resource, _keep(new, {}, "status"), new, options)  # the status is the server's
        if options.dry_run:
            return Stored(namespace, name, self.store.version, new)
        return self.store.put(resource.key, namespace, name, new)

    def replace(self, resource: ResourceType, namespace: str, name: str, sent: object, options: WriteOptions | None = None) -> Stored:
        """Store `sent` in place of the current object, or only its status through that subresource."""
        options = options or WriteOptions()
        current = self.current(resource, namespace, name)
        new = meta.check_object(resource, namespace, sent)
        if not new["metadata"].get("resourceVersion") and (resource.custom or resource.key in _VERSION_REQUIRED):
            why = "Invalid value: 0x0: must be specified for an update"
            raise invalid(resource, name, [("metadata.resourceVersion", why)])
        meta.continue_from(resource, current.object, new)
        return self._update(resource, current, new, options)

    def patch(
        self,
        resource: ResourceType,
        namespace: str,
        name: str,
        request: PatchRequest,
        options: WriteOptions | None = None,
    ) -> tuple[Stored, bool]:
        """Apply a patch to the current object. Server-side apply may create it. Return the object, and whether it was created."""
        options = options or WriteOptions()
        current = self.store.get(resource.key, namespace, name)
        applying = request.content_type == APPLY_PATCH
        if current is None:
            if not applying or options.subresource:
                raise not_found(resource, name)
            new = self._patched(resource, name, None, request, options)
            new.setdefault("metadata", {})["name"] = name
            fresh = WriteOptions(options.dry_run, strict=options.strict)
            return self.create(resource, namespace, new, fresh), True
        new = self._patched(resource, name, presented(resource, current.object), request, options)
        if not applying:
            meta.check_patched(resource, new)
        meta.check_uid(resource, current.object, new)
        new = meta.check_object(resource, namespace, new)
        meta.continue_from(resource, current.object, new)
        silent = replace(options, manager="", named=False) if applying else options
        return self._update(resource, current, new, silent), False

    def delete(self, resource: ResourceType, namespace: str, name: str, options: DeleteOptions | None = None) -> tuple[Stored, bool]:
        """Delete an object, or begin to. Return its last content, and whether it is gone.

        An object with finalizers, a running pod and a namespace stay, marked with a deletionTimestamp.
        """
        options = options or DeleteOptions()
        current = self.current(resource, namespace, name)
        meta.check_deletion(resource, current.object, options.uid, options.version)
        grace = self.admission.grace(resource, current.object, options.grace)
        if options.orphan and not options.dry_run:
            self.orphaned.add(current.uid)
        marked = self._marked_for_deletion(current, grace)
        if grace == 0 and not marked["metadata"].get("finalizers") and resource.key != NAMESPACES:
            if options.dry_run:
                return current, True
            if resource.dies_gracefully and marked != current.object:
                # Watchers see the mark before the end, even without time between them.
                self.store.put(resource.key, namespace, name, marked)
            return self.store.remove(resource.key, namespace, name), True
        if marked == current.object or options.dry_run:
            return current, False
        marked = self.admission.on_deletion_begun(resource, marked)
        return self.store.put(resource.key, namespace, name, marked), False

    def modify(self, resource: ResourceType, namespace: str, name: str, change: Callable[[Object], None]) -> Stored | None:
        """Write for the server itself. `change` edits a private copy. Return None if there is no such object.

        A change that changes nothing is not stored. Admission does not see it, so tests of rules use `replace`.
        """
        current = self.store.get(resource.key, namespace, name)
        if current is None:
            return None
        new: Object = _decode(current.encoded)
        change(new)
        return self._commit(resource, current, new, dry_run=False)

    def current(self, resource: ResourceType, namespace: str, name: str) -> Stored:
        """Return the stored object. Raises ApiError 404."""
        found = self.store.get(resource.key, namespace, name)
        if found is None:
            raise not_found(resource, name)
        return found

    def _patched(self, resource: ResourceType, name: str, current: Object | None, request: PatchRequest, options: WriteOptions) -> Object:
        manager = Manager(options.manager if options.named else "", APPLY, resource.api_version, options.subresource)
        try:
            return apply_patch(current, request, manager, self.identity.now(), self.admission.definitions.schema(resource))
        except ApiError as refused:
            if refused.reason:
                refused.details = details_of(resource, name, **refused.details)
            raise

    def _update(self, resource: ResourceType, current: Stored, new: Object, options: WriteOptions) -> Stored:
        """Update an object after the metadata checks. Keep status and the rest apart, and run admission."""
        old, now = current.object, self.identity.now()
        if options.subresource == "status":
            if resource.custom or resource.group in _STATUS_ALONE:
                metadata = _keep(new["metadata"], old["metadata"], "managedFields")
            else:
                metadata = _keep(old["metadata"], new["metadata"], "ownerReferences")
            new = {**_keep(new, old, "status"), "metadata": metadata}
        elif resource.has_status:
            new.pop("status", None)
        self._refuse_unknown_fields(resource, new, options)
        new = to_stored(resource, self.admission.on_update(resource, old, new, now, options.subresource))
        if options.guard is not None:
            options.guard(resource, old, new)
        if resource.has_status and not options.subresource and resource.key != DEFINITIONS:
            new = _keep(old, new, "status")
        if self._is_tracked(resource, options) or (options.manager and "managedFields" in old["metadata"]):
            self._track(resource, old, new, options)
        return self._commit(resource, current, new, dry_run=options.dry_run)

    def _refuse_unknown_fields(self, resource: ResourceType, new: Object, options: WriteOptions) -> None:
        """Refuse unknown fields if the client asked for strictness. Otherwise they are pruned silently."""
        unknown = self.admission.definitions.unknown_fields(resource, new) if options.strict else []
        if unknown:
            shown = ", ".join(f'unknown field "{path}"' for path in unknown)
            what = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}'
            raise bad_request(f"{what}: strict decoding error: {shown}")

    def _is_tracked(self, resource: ResourceType, options: WriteOptions) -> bool:
        return options.named or bool(options.manager and resource.key not in _BUSY)

    def _track(self, resource: ResourceType, old: Object, new: Object, options: WriteOptions) -> None:
        new["metadata"] = {**new["metadata"]}
        manager = Manager(options.manager, UPDATE, str(new["apiVersion"]), options.subresource)
        track_update(old, new, manager, self.identity.now(), self.admission.definitions.schema(resource))

    def _commit(self, resource: ResourceType, current: Stored, new: Object, *, dry_run: bool) -> Stored:
        if new == current.object:
            return current
        metadata = new["metadata"]
        if resource.counts_generations and not meta.same_desire(resource, current.object, new):
            metadata["generation"] = metadata.get("generation", 0) + 1
        if dry_run:
            return Stored(current.namespace, current.name, current.version, new)
        if _deletion_is_due(metadata) and resource.key != NAMESPACES:
            return self.store.remove(resource.key, current.namespace, current.name)
        return self.store.put(resource.key, current.namespace, current.name, new)

    def _marked_for_deletion(self, current: Stored, grace: int) -> Object:
        metadata = {**current.object["metadata"]}
        if "deletionTimestamp" not in metadata or grace < metadata.get("deletionGracePeriodSeconds", 0):
            if "generation" in metadata and "deletionTimestamp" not in metadata:
                metadata["generation"] += 1
            metadata["deletionTimestamp"] = self.identity.later(grace)
            metadata["deletionGracePeriodSeconds"] = grace
        return {**current.object, "metadata": metadata}

    def _check_namespace(self, resource: ResourceType, namespace: str, new: Object) -> None:
        if not resource.namespaced:
            return
        if not namespace:
            raise bad_request(f"{resource.kind}: an object of a namespaced type must be created in a namespace")
        found = self.store.get(NAMESPACES, "", namespace)
        if found is None:
            raise not_found(self.registry.served(NAMESPACES), namespace)
        if "deletionTimestamp" in found.object["metadata"]:
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            cause: dict[str, Any] = {"reason": "NamespaceTerminating", "message": why, "field": "metadata.namespace"}
            raise forbidden(resource, str(new["metadata"].get("name", "")), why, [cause])


def _keep(old: Object, new: Object, part: str) -> Object:
    """Return `new` with one part of `old`, or without the part if `old` has none."""
    kept = {key: value for key, value in new.items() if key != part}
    if part in old:
        kept[part] = old[part]
    return kept


def _deletion_is_due(metadata: Object) -> bool:
    return "deletionTimestamp" in metadata and not metadata.get("finalizers") and metadata.get("deletionGracePeriodSeconds", 0) == 0
