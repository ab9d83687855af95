"""Refusals in the words of the Kubernetes API: an exception with its HTTP code, reason and Status body."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from kubesandbox.resources import ResourceType

#: A decoded Kubernetes object. An object in the store never changes in place.
Object = dict[str, Any]

#: The reason of a cause, by the beginning of its message.
_CAUSES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Required value": "FieldValueRequired",
        "Unsupported value": "FieldValueNotSupported",
        "Forbidden": "FieldValueForbidden",
        "Duplicate value": "FieldValueDuplicate",
        "Too long": "FieldValueTooLong",
        "Too many": "FieldValueTooMany",
        "Not found": "FieldValueNotFound",
    }
)


class ApiError(Exception):
    """A refusal of a request.

    Attributes:
        code: HTTP status.
        reason: Kubernetes' word for programs.
        message: sentence for people.
        details: details of the Status.
        retry_after: seconds in the header `Retry-After`; None for no header.
    """

    def __init__(self, code: int, reason: str, message: str, details: Object | None = None, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = dict(details or {})
        self.retry_after = retry_after
        if retry_after is not None:
            self.details["retryAfterSeconds"] = retry_after

    def status(self) -> Object:
        """Return the Status object of the answer."""
        body: Object = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        }
        if self.reason:
            body["reason"] = self.reason
        if self.details:
            body["details"] = self.details
        return body


def success(code: int | None = None, details: Object | None = None) -> Object:
    """Return the Status for a request without an object to answer with. A deletion leaves `code` out."""
    body: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if code is not None:
        body["code"] = code
    if details:
        body["details"] = details
    return body


def details_of(resource: ResourceType, name: str, **more: Any) -> Object:
    """Return the `details` of a Status that name an object."""
    found: Object = {"name": name, "group": resource.group, "kind": resource.plural}
    return {key: value for key, value in {**found, **more}.items() if value}


def bad_request(message: str) -> ApiError:
    """Return 400: the request is not understood."""
    return ApiError(400, "BadRequest", message)


def unauthorized() -> ApiError:
    """Return 401: the token is missing or unknown."""
    return ApiError(401, "Unauthorized", "Unauthorized")


def forbidden(resource: ResourceType, name: str, why: str, causes: Iterable[Object] = ()) -> ApiError:
    """Return 403: the request is understood and not allowed."""
    message = f'{resource.qualified} "{name}" is forbidden: {why}'
    return ApiError(403, "Forbidden", message, details_of(resource, name, causes=list(causes)))


def not_found(resource: ResourceType, name: str) -> ApiError:
    """Return 404 for an object."""
    return ApiError(404, "NotFound", f'{resource.qualified} "{name}" not found', details_of(resource, name))


def no_such_path() -> ApiError:
    """Return 404 for a path that is not served."""
    return ApiError(404, "NotFound", "the server could not find the requested resource")


def method_not_allowed() -> ApiError:
    """Return 405: the type does not serve this verb."""
    message = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", message)


def already_exists(resource: ResourceType, name: str) -> ApiError:
    """Return 409 for the creation of an object that exists."""
    return ApiError(409, "AlreadyExists", f'{resource.qualified} "{name}" already exists', details_of(resource, name))


def conflict(resource: ResourceType, name: str, why: str, subresource: str = "") -> ApiError:
    """Return 409: another writer was first, or a precondition does not hold."""
    suffix = f"/{subresource}" if subresource else ""
    message = f'Operation cannot be fulfilled on {resource.qualified}{suffix} "{name}": {why}'
    return ApiError(409, "Conflict", message, details_of(resource, name, kind=f"{resource.plural}{suffix}"))


def not_the_one_meant(resource: ResourceType, name: str, why: str) -> ApiError:
    """Return 409 for a deletion of another object with that name, or of another version. The message names the kind."""
    message = f'Operation cannot be fulfilled on {resource.kind}{_group_suffix(resource)} "{name}": {why}'
    return ApiError(409, "Conflict", message, details_of(resource, name, kind=resource.kind))


def unspecific(message: str) -> ApiError:
    """Return 500 without a reason, the real server's answer to checks without a status of their own."""
    return ApiError(500, "", message)


def modified(resource: ResourceType, name: str) -> ApiError:
    """Return 409: the sent resourceVersion is not the current one."""
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(resource, name, why)


def expired(message: str) -> ApiError:
    """Return 410: the requested version has been compacted away."""
    return ApiError(410, "Expired", message)


def unsupported_media_type(content_type: str, accepted: Iterable[str]) -> ApiError:
    """Return 415: the server does not read this format."""
    message = (
        f"the body of the request was in an unknown format - {content_type or 'none'} - accepted media types include: {', '.join(accepted)}"
    )
    return ApiError(415, "UnsupportedMediaType", message)


def not_acceptable(accepted: Iterable[str]) -> ApiError:
    """Return 406: the server does not write this format."""
    message = f"only the following media types are accepted: {', '.join(accepted)}"
    return ApiError(406, "NotAcceptable", message)


def invalid(resource: ResourceType, name: str, faults: Iterable[tuple[str, str]]) -> ApiError:
    """Return 422: the well-formed object may not be stored. `faults` are paths of fields and problems."""
    return invalid_object(resource.group, resource.kind, name, faults)


def invalid_object(group: str, kind: str, name: str, faults: Iterable[tuple[str, str]]) -> ApiError:
    """Return 422 like `invalid`, for an object of this group and kind."""
    found = list(faults)
    lines = [f"{path}: {what}" if path else what for path, what in found]
    shown = lines[0] if len(lines) == 1 else f"[{', '.join(lines)}]"
    details = {"name": name, "group": group, "kind": kind, "causes": [_cause(path, what) for path, what in found]}
    named = f"{kind}.{group}" if group else kind
    return ApiError(422, "Invalid", f'{named} "{name}" is invalid: {shown}', {key: value for key, value in details.items() if value})


def unprocessable(message: str) -> ApiError:
    """Return 422: the well-formed patch does not fit."""
    return ApiError(422, "Invalid", message)


def invalid_options(kind: str, field: str, what: str) -> ApiError:
    """Return 422 about a parameter. `kind` is that of the options (`DeleteOptions`)."""
    details: Object = {"group": "meta.k8s.io", "kind": kind, "causes": [_cause(field, what)]}
    return ApiError(422, "Invalid", f'{kind}.meta.k8s.io "" is invalid: {field}: {what}', details)


def too_many_requests(message: str, retry_after: int | None = None, causes: Iterable[Object] = ()) -> ApiError:
    """Return 429: the client may try again later."""
    found = list(causes)
    return ApiError(429, "TooManyRequests", message, {"causes": found} if found else None, retry_after)


def _cause(field: str, what: str) -> Object:
    return {"reason": reason_of(what), "message": what, "field": field}


def reason_of(what: str) -> str:
    """Return the word for programs about a problem of a field, which follows from the sentence for people."""
    if " in body must be of type " in what:
        return "FieldValueTypeInvalid"
    return _CAUSES.get(what.partition(":")[0], "FieldValueInvalid")


def _group_suffix(resource: ResourceType) -> str:
    return f".{resource.group}" if resource.group else ""
