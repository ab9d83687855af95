"""A request's query and body, read once and checked. A bad value is a 400 that names it.

URL paths: type, namespace, name, subresource.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

import msgspec
import yaml

from kubesandbox.edits.patches import APPLY_PATCH, PATCHES
from kubesandbox.resources import ResourceRegistry, ResourceType
from kubesandbox.status import Object, bad_request, invalid_options, unspecific, unsupported_media_type
from kubesandbox.storage.reads import ListOptions
from kubesandbox.storage.writes import DeleteOptions, WriteOptions
from kubesandbox.web.protobuf import PROTOBUF, ProtobufError, decode_protobuf
from placewright.api.yamldocs import only_document


@dataclass(frozen=True, slots=True)
class Route:
    """A parsed path. `namespace` is None for a collection over all namespaces and for cluster-scoped types."""

    resource: ResourceType
    namespace: str | None
    name: str = ""
    subresource: str = ""

    @property
    def scope(self) -> str:
        """Namespace of the object in the store; empty for cluster-scoped types."""
        return self.namespace or ""


def route(registry: ResourceRegistry, path: str) -> Route | None:
    """Return the meaning of `path` (without query), or None for an unknown path."""
    parts = path.strip("/").split("/")
    if "%" in path:
        parts = [unquote(part) for part in parts]
    if parts[0] == "api" and len(parts) > 2:
        return _in_version(registry, "", parts[1], parts[2:])
    if parts[0] == "apis" and len(parts) > 3:
        return _in_version(registry, parts[1], parts[2], parts[3:])
    return None


def _in_version(registry: ResourceRegistry, group: str, version: str, rest: list[str]) -> Route | None:
    namespace: str | None = None
    if len(rest) > 2 and rest[0] == "namespaces" and registry.find(group, version, rest[2]) is not None:
        namespace, rest = rest[1], rest[2:]
    resource = registry.find(group, version, rest[0])
    if resource is None or len(rest) > 3 or "" in rest:
        return None
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if subresource and subresource not in (*resource.subresources, "finalize"):
        return None
    if resource.namespaced and name and namespace is None:
        return None
    if not resource.namespaced and namespace is not None:
        return None
    return Route(resource, namespace, name, subresource)


Query = dict[str, str]
JSON: Final = "application/json"
#: Largest number of bytes of a fieldManager.
LONGEST_MANAGER: Final = 128

#: Largest number of digits of a resourceVersion.
LONGEST_VERSION: Final = 18

_YAML: Final = ("application/yaml", APPLY_PATCH)
_decode = msgspec.json.Decoder().decode


def parse_query(text: str) -> Query:
    """Return the last value of each parameter."""
    return dict(parse_qsl(text, keep_blank_values=True)) if text else {}


def flag(query: Query, name: str) -> bool:
    """Return a boolean parameter, False if it is absent."""
    return optional_flag(query, name) or False


def optional_flag(query: Query, name: str) -> bool | None:
    """Return a boolean parameter, None if it is absent."""
    text = query.get(name)
    if text is None or text == "":
        return None
    if text.lower() in ("1", "true", "t"):
        return True
    if text.lower() in ("0", "false", "f"):
        return False
    raise bad_request(f"{name}={text!r}: must be true or false")


def number(query: Query, name: str) -> int | None:
    """Return a parameter that is a whole number of at least 0, or None if it is absent."""
    text = query.get(name)
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise bad_request(f"{name}={text!r}: must be a whole number, 0 or more")
    return int(text)


def list_options(query: Query) -> ListOptions:
    """Return the options of a list or watch."""
    _check_version(query)
    number(query, "timeoutSeconds")
    initial = optional_flag(query, "sendInitialEvents")
    match = _version_match(query, initial)
    return ListOptions(
        # A negative limit counts as none.
        limit=0 if query.get("limit", "").startswith("-") else number(query, "limit") or 0,
        token=query.get("continue", ""),
        version=query.get("resourceVersion", ""),
        match=match,
        bookmarks=flag(query, "allowWatchBookmarks"),
        initial_events=initial,
    )


def check_read_version(query: Query) -> None:
    """Raise ApiError 500, like the real server, if the request for one object has an invalid resourceVersion."""
    if why := _no_version(query):
        raise unspecific(why)


def _check_version(query: Query) -> None:
    """Refuse an invalid version like the real server: lists with 400, watches with 500 and no reason."""
    if why := _no_version(query):
        raise unspecific(why) if flag(query, "watch") else bad_request(f"invalid resource version: {why}")


def _no_version(query: Query) -> str:
    """Return the fault of a request's resourceVersion, empty for none."""
    text = query.get("resourceVersion") or "0"
    if not text.isascii() or not text.isdigit():
        why = "invalid syntax"
    elif len(text) > LONGEST_VERSION:
        why = "value out of range"
    else:
        return ""
    quoted = json.dumps(text)
    return f"resourceVersion: Invalid value: {quoted}: strconv.ParseUint: parsing {quoted}: {why}"


def _version_match(query: Query, initial: bool | None) -> str:
    match, version = query.get("resourceVersionMatch", ""), query.get("resourceVersion", "")
    why = ""
    if match not in ("", "Exact", "NotOlderThan"):
        why = f'Unsupported value: "{match}": supported values: "Exact", "NotOlderThan", ""'
    elif initial is not None and match != "NotOlderThan":
        why = "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
    elif match and initial is None and flag(query, "watch"):
        why = "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
    elif match and initial is None and not version:
        why = "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"
    elif match == "Exact" and version == "0":
        why = 'Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
    if why:
        raise invalid_options("ListOptions", "resourceVersionMatch", why)
    return match


def is_dry_run(query: Query, kind: str) -> bool:
    """Return whether nothing must be stored. `kind` is that of the request's options."""
    text = query.get("dryRun")
    if text in (None, ""):
        return False
    if text != "All":
        raise invalid_options(kind, "dryRun", f'Unsupported value: "{text}": supported values: "All"')
    return True


def write_options(query: Query, subresource: str, user_agent: str, kind: str) -> WriteOptions:
    """Return the options of a write, of that `kind`. The manager of fields defaults to the client's name in its User-Agent."""
    named = query.get("fieldManager", "")
    if len(named.encode()) > LONGEST_MANAGER:
        raise invalid_options(kind, "fieldManager", f"Too long: may not be more than {LONGEST_MANAGER} bytes")
    manager = named or user_agent.split("/", 1)[0][:LONGEST_MANAGER] or "unknown"
    validation = query.get("fieldValidation", "")
    if validation not in ("", "Ignore", "Warn", "Strict"):
        raise bad_request(f"fieldValidation={validation!r}: allowed are Ignore, Warn and Strict")
    strict = validation == "Strict"
    return WriteOptions(is_dry_run(query, kind), manager, subresource, named=bool(named), strict=strict)


def delete_options(query: Query, body: object) -> DeleteOptions:
    """Return the options of a deletion, from the body, then the query."""
    if body is not None and not isinstance(body, dict):
        raise bad_request(f"DeleteOptions: the body must be an object, found {type(body).__name__}")
    sent: Object = body or {}
    preconditions = sent.get("preconditions") or {}
    if not isinstance(preconditions, dict):
        raise bad_request("DeleteOptions: preconditions must be an object")
    policy = sent.get("propagationPolicy") or query.get("propagationPolicy") or ""
    if policy not in ("", "Background", "Foreground", "Orphan"):
        why = f'Unsupported value: "{policy}": supported values: "Foreground", "Background", "Orphan", "nil"'
        raise invalid_options("DeleteOptions", "propagationPolicy", why)
    grace = sent.get("gracePeriodSeconds")
    if grace is None:
        grace = number(query, "gracePeriodSeconds")
    if grace is not None and type(grace) is not int:
        raise bad_request(f"gracePeriodSeconds={grace!r}: must be a whole number")
    return DeleteOptions(
        # A negative grace counts as the shortest one.
        grace=1 if grace is not None and grace < 0 else grace,
        uid=preconditions.get("uid"),
        version=preconditions.get("resourceVersion"),
        orphan=policy == "Orphan" or sent.get("orphanDependents") is True,
        dry_run=is_dry_run(query, "DeleteOptions") or sent.get("dryRun") == ["All"],
    )


def eviction_options(query: Query, body: object) -> DeleteOptions:
    """Return the options of an eviction's deletion."""
    if not isinstance(body, dict):
        raise bad_request("Eviction: the body must be an object")
    return delete_options(query, body.get("deleteOptions"))


def decode(body: bytes, content_type: str) -> Any:
    """Return the content of a body in JSON or YAML, or None for an empty one. Raises ApiError 400 and 415."""
    if not body:
        return None
    kind = content_type.split(";", 1)[0].strip().lower()
    try:
        if kind in _YAML:
            return only_document(body.decode())
        if kind in ("", JSON, *PATCHES):
            return _decode(body)
        if kind == PROTOBUF:
            return decode_protobuf(body)
    except ProtobufError as error:
        raise unsupported_media_type(f"{kind} ({error})", (JSON, *_YAML)) from error
    except (msgspec.DecodeError, yaml.YAMLError, UnicodeError, RecursionError, ValueError) as error:
        raise bad_request(f"the body is not valid {'YAML' if kind in _YAML else 'JSON'}: {error}") from error
    raise unsupported_media_type(kind, (JSON, "application/yaml"))


def content(body: bytes, content_type: str) -> Any:
    """Return the content of a body like `decode`. Raises ApiError 400 for an empty one."""
    if not body:
        raise bad_request("the body is empty")
    return decode(body, content_type)


def patch_type(content_type: str) -> str:
    """Return the patch format of a PATCH. Raises ApiError 415."""
    kind = content_type.split(";", 1)[0].strip().lower()
    if kind not in PATCHES:
        raise unsupported_media_type(kind, PATCHES)
    return kind
