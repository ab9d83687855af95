"""Requests on objects: the action for each method and path, and the form of the result.

The presentations of objects: unchanged, as rows of a Table (kubectl get), or only metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec
from aiohttp import web

from kubesandbox import status
from kubesandbox.auth.access import MASTERS, Access, User
from kubesandbox.auth.reviews import GROUPS as REVIEW_GROUPS
from kubesandbox.auth.reviews import Reviews
from kubesandbox.definitions.definitions import Definitions
from kubesandbox.devices.statusrights import StatusRights
from kubesandbox.edits.patches import APPLY_PATCH, PatchRequest
from kubesandbox.kinds.pods import PodOperations
from kubesandbox.kinds.webhooks import MUTATING, Webhooks, Write
from kubesandbox.resources import RESOURCE_CLAIMS, ResourceType, presented
from kubesandbox.status import Object, bad_request, method_not_allowed, not_acceptable
from kubesandbox.storage.reads import Page, Reads, plain_view
from kubesandbox.storage.selectors import Predicate, selection
from kubesandbox.storage.store import Stored, View
from kubesandbox.storage.writes import DeleteOptions, WriteOptions, Writes
from kubesandbox.web import queries
from kubesandbox.web.columns import Column, columns_of
from kubesandbox.web.endpoint import Answer, Reply
from kubesandbox.web.queries import Query, Route, route

_INCLUDES: Final = ("", "None", "Metadata", "Object")
#: Media types of real servers. All of them are answered in JSON here, with JSON's media type.
_ACCEPTABLE: Final = frozenset({"", "*/*", "application/*", "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"})


@dataclass(frozen=True)
class Views:
    """The views of one server."""

    reads: Reads
    definitions: Definitions
    clock: Callable[[], float]

    def choose(self, resource: ResourceType, accept: str, query: Query) -> View:
        """Return the view that an Accept header asks for first."""
        form = _form(accept)
        if form == "Table":
            return View(resource, self._row_encoder(resource, query))
        return View(resource, lambda stored: _encode(partial_metadata(stored.object))) if form else plain_view(resource)

    def encode_page(self, view: View, page: Page, accept: str, query: Query) -> bytes:
        """Encode a list as the Accept header asks."""
        form = _form(accept)
        if form == "Table":
            return _encode(self._table(view.resource, page.objects, query, page.metadata))
        if not form:
            return self.reads.encode_page(view, page)
        items = [partial_metadata(each.object) for each in page.objects]
        return _encode({"kind": f"{form}List", "apiVersion": "meta.k8s.io/v1", "metadata": page.metadata, "items": items})

    def _row_encoder(self, resource: ResourceType, query: Query) -> Callable[[Stored], bytes]:
        """Encode tables of one row, for a watch: only the first one has the column definitions."""
        said = False

        def encode(stored: Stored) -> bytes:
            nonlocal said
            shown = self._table(resource, [stored], query, {"resourceVersion": str(stored.version)})
            if said:
                shown["columnDefinitions"] = None
            said = True
            return _encode(shown)

        return encode

    def _table(self, resource: ResourceType, objects: Iterable[Stored], query: Query, metadata: Object) -> Object:
        include = query.get("includeObject", "")
        if include not in _INCLUDES:
            raise bad_request(f"includeObject={include!r}: allowed are None, Metadata and Object")
        shown = [presented(resource, each.object) for each in objects]
        columns = columns_of(resource.kind, self.definitions.columns(resource))
        return table(columns, shown, include_object=include, now=self.clock(), metadata=metadata)


def _form(accept: str) -> str:
    """Return the form that an Accept header asks for first: Table, PartialObjectMetadata, or empty for unchanged objects."""
    if "as=" not in accept and not any(each.partition(";")[0].strip() in _ACCEPTABLE for each in accept.split(",")):
        raise not_acceptable(sorted(kind for kind in _ACCEPTABLE if kind.startswith("application/") and "*" not in kind))
    wanted = accept.split(",", 1)[0].replace(" ", "")
    return next((form for form in ("Table", "PartialObjectMetadata") if f"as={form}" in wanted), "")


# --- tables ------------------------------------------------------------------------------------------------------------------


def table(columns: Sequence[Column], objects: Iterable[Object], *, include_object: str, now: float, metadata: Object) -> Object:
    """Return a Table of objects of one kind.

    `include_object` is None, Metadata or Object, like in the query, and Metadata by default. `now` is in seconds since the epoch, and
    `metadata` is the metadata of the list.
    """
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": [column.definition() for column in columns],
        "rows": [{"cells": [_cell(column, obj, now) for column in columns], "object": _included(obj, include_object)} for obj in objects],
    }


def _cell(column: Column, obj: Object, now: float) -> Any:
    """Return one cell. An object with values of unknown types spoils its own cells, and not the whole list."""
    try:
        return column.cell(obj, now)
    except (AttributeError, KeyError, TypeError, ValueError):
        return "<invalid>"


def partial_metadata(obj: Object) -> Object:
    """Return an object cut down to its metadata."""
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj.get("metadata", {})}


def _included(obj: Object, include_object: str) -> Object | None:
    if include_object == "None":
        return None
    return obj if include_object == "Object" else partial_metadata(obj)


_encode = msgspec.json.Encoder().encode
_JSON = "application/json"


@dataclass
class ObjectRequests:
    """Serves `/api` and `/apis` below the level of groups and versions."""

    writes: Writes
    pods: PodOperations
    views: Views
    access: Access
    webhooks: Webhooks

    async def answer(self, request: web.BaseRequest, path: str, query: Query, user: User) -> Answer | None:
        """Return the answer to a request, or None for an unknown path. Raises ApiError."""
        found = route(self.writes.registry, path)
        if found is None:
            return None
        accept = request.headers.get("Accept", "")
        if request.method in ("GET", "HEAD"):
            return self._read(found, query, accept)
        body = await request.read()
        if request.method == "DELETE":
            return self._delete(found, query, queries.decode(body, request.headers.get("Content-Type", "")))
        write = self._write(request, found, body, user)
        if (mutated := await self._mutated(found, query, write, user)) is not None:
            write = self._write(request, found, mutated, user, _JSON)
        await self._ask_webhooks(found, query, write, user)
        return write(query)

    def _write(self, request: web.BaseRequest, found: Route, body: bytes, user: User, content_type: str = "") -> Callable[[Query], Answer]:
        """Return the function that carries the request out with given parameters, so that `dryRun` can rehearse it."""
        content_type, agent = content_type or request.headers.get("Content-Type", ""), request.headers.get("User-Agent", "")
        if request.method == "PATCH":
            return lambda query: self._patch(found, query, body, content_type, agent, user)
        if request.method == "POST":
            return lambda query: self._post(found, query, queries.content(body, content_type), agent, user)
        if request.method == "PUT":
            return lambda query: self._put(found, query, queries.content(body, content_type), agent, user)
        raise method_not_allowed()

    async def _mutated(self, found: Route, query: Query, write: Callable[[Query], Answer], user: User) -> bytes | None:
        """Let mutating webhooks change a creation after its dry run. Return its body, or None without webhooks. Raises ApiError."""
        if found.name or found.subresource:
            return None
        hooks = self.webhooks.wants(found.resource, "", "CREATE", MUTATING)
        if not hooks:
            return None
        shown = write({**query, "dryRun": "All"})
        assert isinstance(shown, Reply)
        new, dry_run = msgspec.json.decode(shown.body), bool(query.get("dryRun"))
        return _encode(await self.webhooks.mutate(hooks, Write(found.resource, "", "CREATE", new, None, dry_run, user.name)))

    async def _ask_webhooks(self, found: Route, query: Query, write: Callable[[Query], Answer], user: User) -> None:
        """Ask the webhooks about a write, and show them its rehearsal. Raises ApiError if one refuses."""
        resource = found.resource
        old = self.writes.store.get(resource.key, found.scope, found.name) if found.name else None
        operation = "UPDATE" if old is not None else "CREATE"
        hooks = self.webhooks.wants(resource, found.subresource, operation) if found.subresource in ("", "status") else []
        if hooks:
            shown = write({**query, "dryRun": "All"})
            assert isinstance(shown, Reply)
            former, dry_run = None if old is None else old.object, bool(query.get("dryRun"))
            new = msgspec.json.decode(shown.body)
            await self.webhooks.ask(hooks, Write(resource, found.subresource, operation, new, former, dry_run, user.name))

    def _read(self, found: Route, query: Query, accept: str) -> Answer:
        _require(found, "get" if found.name else "list")
        if found.subresource == "log":
            self.writes.current(found.resource, found.scope, found.name)
            return Reply(b"This pod is simulated: it has no log.\n", content_type="text/plain")
        view = self.views.choose(found.resource, accept, query)
        if found.name:
            queries.check_read_version(query)
            return Reply(view.encode(self.writes.current(found.resource, found.scope, found.name)))
        options = queries.list_options(query)
        matches = self._selection(found, query)
        if queries.flag(query, "watch"):
            return self.views.reads.watch(view, found.namespace, matches, options)
        page = self.views.reads.page(found.resource, found.namespace, matches, options)
        return Reply(self.views.encode_page(view, page, accept, query))

    def _selection(self, found: Route, query: Query) -> Predicate | None:
        extra = self.views.definitions.selectable(found.resource)
        return selection(found.resource, query.get("labelSelector", ""), query.get("fieldSelector", ""), extra)

    def _post(self, found: Route, query: Query, sent: object, agent: str, user: User) -> Answer:
        resource = found.resource
        if found.subresource in ("binding", "eviction"):
            return self._pod_operation(found, query, sent)
        if found.subresource == "token":
            return Reply(_encode(self.access.answer_token_request(found.scope, found.name, sent)), 201)
        if found.name:
            raise method_not_allowed()
        _require(found, "create")
        if resource.kind == "Binding":
            return self._pod_operation(found, query, sent)
        if resource.group in REVIEW_GROUPS:
            return Reply(_encode(Reviews(self.access).answer(resource.kind, user, sent)), 201)
        options = queries.write_options(query, "", agent, "CreateOptions")
        return self._shown(resource, self.writes.create(resource, found.scope, sent, options), 201)

    def _pod_operation(self, found: Route, query: Query, sent: object) -> Answer:
        if found.subresource == "eviction":
            if _name_of(sent, "Eviction") != found.name:
                raise bad_request("name in URL does not match name in Eviction object")
            self.pods.evict(found.scope, found.name, queries.eviction_options(query, sent))
        else:
            name = found.name or _name_of(sent, "Binding")
            dry_run = queries.is_dry_run(query, "CreateOptions")
            self.pods.bind(found.scope, name, sent, through_pod=bool(found.name), dry_run=dry_run)
        return Reply(_encode(status.success(201)), 201)

    def _put(self, found: Route, query: Query, sent: object, agent: str, user: User) -> Answer:
        _require_name(found)
        options = self._guarded(found, queries.write_options(query, found.subresource, agent, "UpdateOptions"), user, "update")
        return self._shown(found.resource, self.writes.replace(found.resource, found.scope, found.name, sent, options), 200)

    def _guarded(self, found: Route, options: WriteOptions, user: User, verb: str) -> WriteOptions:
        """Guard the status of claims, except from administrators."""
        if found.resource.key != RESOURCE_CLAIMS or found.subresource != "status" or MASTERS in user.groups:
            return options
        return replace(options, guard=StatusRights(self.access.authorizer, user, verb).check)

    def _patch(self, found: Route, query: Query, body: bytes, content_type: str, agent: str, user: User) -> Answer:
        _require_name(found)
        request = PatchRequest(queries.content(body, content_type), queries.patch_type(content_type), queries.flag(query, "force"))
        options = self._guarded(found, queries.write_options(query, found.subresource, agent, "PatchOptions"), user, "patch")
        if request.force and request.content_type != APPLY_PATCH:
            raise status.invalid_options("PatchOptions", "force", "Forbidden: may not be specified for non-apply patch")
        stored, created = self.writes.patch(found.resource, found.scope, found.name, request, options)
        return self._shown(found.resource, stored, 201 if created else 200)

    def _delete(self, found: Route, query: Query, sent: object) -> Answer:
        if found.subresource:
            raise method_not_allowed()
        options = queries.delete_options(query, sent)
        resource = found.resource
        if not found.name:
            _require(found, "deletecollection")
            return self._delete_collection(found, query, options)
        _require(found, "delete")
        stored, gone = self.writes.delete(resource, found.scope, found.name, options)
        if gone and resource.kind != "Pod":
            details = status.details_of(resource, found.name, uid=stored.uid)
            return Reply(_encode(status.success(details=details)))
        return self._shown(resource, stored, 200)

    def _delete_collection(self, found: Route, query: Query, options: DeleteOptions) -> Answer:
        page = self.views.reads.page(found.resource, found.namespace, self._selection(found, query), queries.list_options(query))
        for each in page.objects:
            self.writes.delete(found.resource, each.namespace, each.name, options)
        return Reply(self.views.reads.encode_page(plain_view(found.resource), page))

    def _shown(self, resource: ResourceType, stored: Stored, code: int) -> Reply:
        return Reply(plain_view(resource).encode(stored), code)


def _require(found: Route, verb: str) -> None:
    if verb not in found.resource.verbs:
        raise method_not_allowed()


def _require_name(found: Route) -> None:
    if not found.name or found.subresource not in ("", "status", "finalize"):
        raise method_not_allowed()
    _require(found, "update")


def _name_of(sent: object, kind: str) -> str:
    metadata = sent.get("metadata") if isinstance(sent, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str) or not name:
        raise bad_request(f"{kind}: metadata.name must name the pod")
    return name
