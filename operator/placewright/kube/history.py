"""The history of profiles on the API server: one ControllerRevision (apps/v1) a generation, in the operator's namespace.

Why there, and not on the profile: docs/decisions/0013. What a generation said never changes; whether it took is an annotation, because a
generation that had to wait for another profile's schedulerName may still take effect.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from placewright.api.decode import DECODE_ERRORS, DecodeError
from placewright.api.objects import KubeObject, ObjectMeta
from placewright.kube.client import ApiClient
from placewright.kube.discovery import collection_path

#: The namespace of manifests/base; that of a scheduler outside of any pod, too.
DEFAULT_NAMESPACE: Final = "placewright-system"
PROFILE_LABEL: Final = "placewright.dev/profile"
RESULT: Final = "placewright.dev/result"
MESSAGE: Final = "placewright.dev/message"
#: In place of a private key, which has no business in a second object that others may read.
NOT_KEPT: Final = "(not kept)"
_SERVICE_ACCOUNT_NAMESPACE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_LONGEST_LABEL: Final = 63
_LONGEST_NAME: Final = 200
_MAX_MESSAGE: Final = 2048


def operator_namespace(environ: Mapping[str, str], file: Path = _SERVICE_ACCOUNT_NAMESPACE) -> str:
    """The namespace of the pod that we run in; the default one outside of pods."""
    if named := environ.get("POD_NAMESPACE"):
        return named
    try:
        return file.read_text(encoding="utf-8").strip() or DEFAULT_NAMESPACE
    except OSError:
        return DEFAULT_NAMESPACE


class RecordedGeneration(KubeObject, frozen=True):
    """What is kept of a generation, and never changes.

    Attributes:
        profile: name of the SchedulingProfile; `uid` tells it from others that had the name.
        generation: of that object.
        changed_by: the field manager that wrote it, such as `kubectl-client-side-apply`; empty when nobody tells.
        changed_at: RFC 3339; empty when nobody tells.
        spec: as written, without private keys.
    """

    profile: str
    uid: str
    generation: int
    changed_by: str = ""
    changed_at: str = ""
    spec: dict[str, Any] = msgspec.field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Revision:
    """One entry of a profile's history.

    Attributes:
        number: grows within a profile's name, also when the profile is deleted and created again, which generations do not survive.
        recorded: what was written.
        result: what came of it, a `Reason` of conditions; empty when that is not known.
        message: the same for people.
        name: of the ControllerRevision.
    """

    number: int
    recorded: RecordedGeneration
    result: str = ""
    message: str = ""
    name: str = field(default="", compare=False)


class _Stored(KubeObject, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    revision: int = 0
    data: RecordedGeneration | None = None


class _Items(msgspec.Struct, frozen=True):
    items: tuple[msgspec.Raw, ...] = ()


class HistoryStore:
    """Reads and writes revisions in one namespace. Every method raises `RequestError`."""

    def __init__(self, client: ApiClient, namespace: str) -> None:
        self._client = client
        self.namespace = namespace
        self._path = collection_path("apps", "v1", "controllerrevisions").replace(
            "/controllerrevisions", f"/namespaces/{namespace}/controllerrevisions"
        )

    async def revisions(self, profile: str | None = None) -> list[Revision]:
        """Those of one profile, or of all, oldest first; what is not one of ours is passed over."""
        selector = PROFILE_LABEL if profile is None else f"{PROFILE_LABEL}={label_of(profile)}"
        listed = await self._client.get_as(self._path, _Items, {"labelSelector": selector})
        found = [each for each in _readable(listed.items) if profile in (None, each.recorded.profile)]
        return sorted(found, key=lambda each: (each.number, each.recorded.changed_at, each.name))

    async def add(self, revision: Revision) -> None:
        """Write a new one."""
        await self._client.post(self._path, _manifest(revision, self.namespace))

    async def mark(self, revision: Revision) -> None:
        """Say anew what came of a revision that is there."""
        await self._client.patch(f"{self._path}/{revision.name}", {"metadata": {"annotations": _annotations(revision)}})

    async def remove(self, revision: Revision) -> None:
        """Delete one."""
        await self._client.delete(f"{self._path}/{revision.name}")


def _readable(items: Iterable[msgspec.Raw]) -> Iterator[Revision]:
    for item in items:
        try:
            stored = msgspec.json.decode(item, type=_Stored)
        except (*DECODE_ERRORS, DecodeError):
            continue  # one that somebody else wrote under our label
        if stored.data is not None:
            notes = stored.metadata.annotations or {}
            yield Revision(stored.revision, stored.data, notes.get(RESULT, ""), notes.get(MESSAGE, ""), stored.metadata.name)


def _manifest(revision: Revision, namespace: str) -> dict[str, Any]:
    recorded = revision.recorded
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": name_of(recorded),
            "namespace": namespace,
            "labels": {"app.kubernetes.io/managed-by": "placewright", PROFILE_LABEL: label_of(recorded.profile)},
            "annotations": _annotations(revision),
        },
        "revision": revision.number,
        "data": msgspec.to_builtins(recorded),
    }


def _annotations(revision: Revision) -> dict[str, str]:
    return {RESULT: revision.result, MESSAGE: revision.message[:_MAX_MESSAGE]}


def name_of(recorded: RecordedGeneration) -> str:
    """Follows from profile and generation, so that two replicas cannot record the same twice."""
    short = recorded.profile[:_LONGEST_NAME].rstrip("-.")
    return f"{short}-{_digest(recorded.profile + recorded.uid)}-{recorded.generation}"


def label_of(profile: str) -> str:
    """The profile's name as a label's value; a long name is cut, with a digest of the whole."""
    if len(profile) <= _LONGEST_LABEL:
        return profile
    return f"{profile[:50].rstrip('-.')}-{_digest(profile)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:10]


# --- private keys ------------------------------------------------------------------------------------------------------------------


def without_keys(spec: Mapping[str, Any], instead: str = NOT_KEPT) -> dict[str, Any]:
    """A profile's `spec`, or part of one, with another text for the private keys of its extenders."""
    kept = dict(spec)
    extenders = spec.get("extenders")
    if isinstance(extenders, list):
        kept["extenders"] = [_without_key(extender, instead) for extender in extenders]
    return kept


def _without_key(extender: Any, instead: str) -> Any:
    tls = extender.get("tlsConfig") if isinstance(extender, Mapping) else None
    if not isinstance(tls, Mapping) or not tls.get("keyData"):
        return extender
    return {**extender, "tlsConfig": {**tls, "keyData": instead}}


def with_keys_of(spec: Mapping[str, Any], current: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """`spec` with the keys that `current` has for the same extenders, and the URLs of extenders for which it has none."""
    keys = {each.get("urlPrefix"): (each.get("tlsConfig") or {}).get("keyData") for each in current.get("extenders") or ()}
    whole, missing = dict(spec), []
    if isinstance(spec.get("extenders"), list):
        whole["extenders"] = extenders = [dict(each) for each in spec["extenders"]]
        for extender in extenders:
            if (extender.get("tlsConfig") or {}).get("keyData") == NOT_KEPT:
                key = keys.get(extender.get("urlPrefix"))
                missing += [] if key else [str(extender.get("urlPrefix"))]
                extender["tlsConfig"] = {**extender["tlsConfig"], "keyData": key or NOT_KEPT}
    return whole, missing
