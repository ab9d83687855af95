"""Admission webhooks: which of them to ask about a write, and the effect of their answers.

Mutating webhooks are asked about creations, one after the other. Validating ones come later, and are asked about creations and updates.
Only webhooks with a `url` work, because no services run here. Refusals have the words of an API server.
"""

from __future__ import annotations

import base64
import binascii
import json
import ssl
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import aiohttp

from kubesandbox.edits.jsonpatch import apply_json_patch
from kubesandbox.resources import NAMESPACES, GroupResource, ResourceType
from kubesandbox.status import ApiError, Object
from kubesandbox.storage.store import Store
from placewright.api.decode import convert
from placewright.api.objects import LabelSelector
from placewright.api.selectors import compile_label_selector

_GROUP: Final = "admissionregistration.k8s.io"
VALIDATING: Final[GroupResource] = (_GROUP, "validatingwebhookconfigurations")
MUTATING: Final[GroupResource] = (_GROUP, "mutatingwebhookconfigurations")
#: Seconds for a webhook without its own timeout.
_LONGEST_WAIT: Final = 10


@dataclass(frozen=True)
class Write:
    """A write before it happens: `new` would be stored, and `old` is the present object, or None."""

    resource: ResourceType
    subresource: str
    operation: str
    new: Object
    old: Object | None
    dry_run: bool
    user: str


@dataclass(frozen=True)
class Webhooks:
    """The webhooks of one server, in its present configurations."""

    store: Store

    def wants(self, resource: ResourceType, subresource: str, operation: str, configurations: GroupResource = VALIDATING) -> list[Object]:
        """Return the webhooks to ask about such a write, in order of their configurations' names."""
        found = sorted(self.store.listed(configurations), key=lambda each: each.name)
        hooks = (hook for each in found for hook in each.object.get("webhooks") or ())
        return [hook for hook in hooks if any(_matches(rule, resource, subresource, operation) for rule in hook.get("rules") or ())]

    async def ask(self, hooks: list[Object], write: Write) -> None:
        """Ask them one after the other. Raises ApiError if one refuses, or if one fails and must not be ignored."""
        for hook in hooks:
            if self._selects(hook, write):
                await _answer_of(hook, write)

    async def mutate(self, hooks: list[Object], write: Write) -> Object:
        """Ask mutating webhooks, each about the object after the one before. Return the object after the last one.

        Raises ApiError if one refuses, or if one fails and must not be ignored.
        """
        for hook in hooks:
            if self._selects(hook, write):
                patch = (await _answer_of(hook, write)).get("patch")
                if patch:
                    write = replace(write, new=_patched(hook, write.new, patch))
        return write.new

    def _selects(self, hook: Object, write: Write) -> bool:
        """Return whether the hook's selectors select the object and its namespace. Absent ones select all."""
        metadata = write.new["metadata"]
        labels = self.store.content(NAMESPACES, "", metadata.get("namespace", "")).get("metadata", {}).get("labels") or {}
        selectors = ((hook.get("objectSelector"), metadata.get("labels") or {}), (hook.get("namespaceSelector"), labels))
        return all(compile_label_selector(convert(each or {}, LabelSelector)).matches(found) for each, found in selectors)


async def _answer_of(hook: Object, write: Write) -> Mapping[str, Any]:
    """Return the answer, empty if the hook failed and may be ignored. Raises ApiError like `Webhooks.ask`."""
    try:
        answer = await _call(hook, write)
    except _Failed as failure:
        if hook.get("failurePolicy", "Fail") == "Ignore":
            return {}
        message = f'Internal error occurred: failed calling webhook "{hook.get("name")}": {failure}'
        raise ApiError(500, "InternalError", message) from failure
    if answer.get("allowed") is not True:
        raise _denied(hook, answer.get("status") or {})
    return answer


def _patched(hook: Object, content: Object, patch: str) -> Object:
    try:
        found: Object = apply_json_patch(content, json.loads(base64.b64decode(patch)))
    except (ApiError, binascii.Error, ValueError) as error:
        message = f'Internal error occurred: webhook "{hook.get("name")}" sent a patch that does not apply: {error}'
        raise ApiError(500, "InternalError", message) from error
    return found


class _Failed(Exception):
    """A webhook could not be asked, or its answer cannot be read."""


def _matches(rule: Mapping[str, Any], resource: ResourceType, subresource: str, operation: str) -> bool:
    wanted = f"{resource.plural}/{subresource}" if subresource else resource.plural
    resources = {wanted, "*/*"} if subresource else {wanted, "*", "*/*"}
    return bool(
        {"*", operation} & set(rule.get("operations") or ())
        and {"*", resource.group} & set(rule.get("apiGroups") or ())
        and {"*", resource.version} & set(rule.get("apiVersions") or ())
        and resources & set(rule.get("resources") or ())
    )


async def _call(hook: Mapping[str, Any], write: Write) -> Mapping[str, Any]:
    """Call a webhook, and return the `response` of its review."""
    config = hook.get("clientConfig") or {}
    if not config.get("url"):
        raise _Failed("the sandbox has no services: clientConfig.url is all that it can call")
    review = _review(write)
    timeout = aiohttp.ClientTimeout(total=hook.get("timeoutSeconds") or _LONGEST_WAIT)
    try:
        connector = aiohttp.TCPConnector(ssl=_trusting(config.get("caBundle")))
        async with (
            aiohttp.ClientSession(connector=connector, timeout=timeout) as session,
            session.post(config["url"], json=review) as reply,
        ):
            if reply.status != 200:
                raise _Failed(f"an error on the server: {reply.status} {reply.reason}")
            answer = await reply.json()
        response = answer["response"]
        if response["uid"] != review["request"]["uid"]:
            raise _Failed("expected response.uid to be the request's")
    except (aiohttp.ClientError, TimeoutError, ssl.SSLError, binascii.Error, ValueError, KeyError, TypeError) as error:
        raise _Failed(f"Post {config['url']!r}: {error or type(error).__name__}") from error
    found: Mapping[str, Any] = response
    return found


def _trusting(bundle: str | None) -> ssl.SSLContext:
    """Return a TLS context that trusts only the bundle, or the system's authorities without a bundle."""
    return ssl.create_default_context(cadata=base64.b64decode(bundle).decode() if bundle else None)


def _review(write: Write) -> Object:
    resource = write.resource
    named = {"group": resource.group, "version": resource.version}
    kind, plural = {**named, "kind": resource.kind}, {**named, "resource": resource.plural}
    metadata = write.new["metadata"]
    request: Object = {
        "uid": str(uuid.uuid4()),
        "kind": kind,
        "resource": plural,
        "requestKind": kind,
        "requestResource": plural,
        "name": metadata.get("name", ""),
        "operation": write.operation,
        "userInfo": {"username": write.user, "groups": ["system:authenticated"]},
        "object": write.new,
        "oldObject": write.old,
        "dryRun": write.dry_run,
        "options": {"kind": f"{write.operation.capitalize()}Options", "apiVersion": "meta.k8s.io/v1"},
    }
    for name, value in (("namespace", metadata.get("namespace")), ("subResource", write.subresource)):
        if value:
            request[name] = value
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def _denied(hook: Mapping[str, Any], status: Mapping[str, Any]) -> ApiError:
    explanation = status.get("message") or status.get("reason")
    denied = f'admission webhook "{hook.get("name")}" denied the request'
    message = f"{denied}: {explanation}" if explanation else f"{denied} without explanation"
    return ApiError(max(400, int(status.get("code") or 400)), str(status.get("reason") or ""), message)
