"""The history of profiles on the API server: one ControllerRevision (apps/v1) a generation, in the operator's namespace.

Why there, and not on the profile: docs/decisions/0015. A recorded spec never changes. Its result is an annotation, because it can change: a
generation that waits for another profile's schedulerName may still take effect.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from placewright.api.decode import DecodeError, decode
from placewright.api.objects import KubeObject, ObjectMeta
from placewright.kube.client import ApiClient

T = TypeVar("T")

#: The namespace of manifests/base, also for a scheduler that runs outside of a pod.
DEFAULT_NAMESPACE: Final = "placewright-system"
PROFILE_LABEL: Final = "placewright.dev/profile"
RESULT: Final = "placewright.dev/result"
MESSAGE: Final = "placewright.dev/message"
#: Replaces a private key: readers of the history need not be allowed to read the profile.
NOT_KEPT: Final = "(not kept)"
_SERVICE_ACCOUNT_NAMESPACE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_LONGEST_LABEL: Final = 63
_LONGEST_NAME: Final = 200
_MAX_MESSAGE: Final = 2048


def operator_namespace(environ: Mapping[str, str], file: Path = _SERVICE_ACCOUNT_NAMESPACE) -> str:
    """Find the namespace of the pod that this process runs in: `POD_NAMESPACE`, or the file of the service account.

    Returns:
        The namespace; `placewright-system` outside of a pod.
    """
    if named := environ.get("POD_NAMESPACE"):
        return named
    try:
        return file.read_text(encoding="utf-8").strip() or DEFAULT_NAMESPACE
    except OSError:
        return DEFAULT_NAMESPACE


class RecordedGeneration(KubeObject, frozen=True):
    """The record of one generation. It never changes.

    Attributes:
        profile: name of the SchedulingProfile.
        uid: uid of that object; a new profile of the same name has another.
        generation: generation of that object.
        changed_by: the field manager that wrote it, such as `kubectl-client-side-apply`; empty when unknown.
        changed_at: RFC 3339; empty when unknown.
        spec: spec as written, without private keys.
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
        number: grows within a profile's name, also when the profile is deleted and created again; generations begin at 1 then.
        recorded: the generation.
        result: reason of the condition that it led to; empty when unknown.
        message: the condition's message.
        name: name of the ControllerRevision.
    """

    number: int
    recorded: RecordedGeneration
    result: str = ""
    message: str = ""
    name: str = field(default="", compare=False)


class _Stored(KubeObject, frozen=True):
    data: RecordedGeneration
    metadata: ObjectMeta = ObjectMeta()
    revision: int = 0


class _RevisionList(msgspec.Struct, frozen=True):
    items: tuple[msgspec.Raw, ...] = ()


class RevisionStore:
    """Reads and writes ControllerRevisions of one namespace: their `data` cannot be changed, and tenants cannot write there.

    Attributes:
        namespace: the operator's.
    """

    def __init__(self, client: ApiClient, namespace: str) -> None:
        self._client = client
        self.namespace = namespace
        self._path = f"/apis/apps/v1/namespaces/{namespace}/controllerrevisions"

    async def _listed(self, selector: str, read: Callable[[msgspec.Raw], T]) -> list[T]:
        """List revisions by label. Other writers' objects under our label, which `read` refuses with `DecodeError`, are left out."""
        listed = await self._client.get_as(self._path, _RevisionList, {"labelSelector": selector})
        found: list[T] = []
        for item in listed.items:
            with contextlib.suppress(DecodeError):
                found.append(read(item))
        return found

    def _manifest(
        self, name: str, label: tuple[str, str], annotations: Mapping[str, str], number: int, data: msgspec.Struct
    ) -> dict[str, Any]:
        labels = {"app.kubernetes.io/managed-by": "placewright", label[0]: label[1]}
        metadata = {"name": name, "namespace": self.namespace, "labels": labels, "annotations": annotations}
        kind = {"apiVersion": "apps/v1", "kind": "ControllerRevision"}
        return {**kind, "metadata": metadata, "revision": number, "data": msgspec.to_builtins(data)}


class HistoryStore(RevisionStore):
    """Reads and writes the history. Every method raises `RequestError` when the server refuses or does not answer."""

    async def revisions(self, profile: str | None = None) -> list[Revision]:
        """Read the history.

        Args:
            profile: name of a profile; None for all.

        Returns:
            The revisions, oldest first; objects under our label that are no revisions are left out.
        """
        selector = PROFILE_LABEL if profile is None else f"{PROFILE_LABEL}={label_of(profile)}"
        found = [each for each in await self._listed(selector, _revision) if profile in (None, each.recorded.profile)]
        return sorted(found, key=lambda each: (each.number, each.recorded.changed_at, each.name))

    async def add(self, revision: Revision) -> None:
        """Write a new revision. Two replicas cannot both add one generation: its name follows from the profile and the generation (409)."""
        recorded = revision.recorded
        label = PROFILE_LABEL, label_of(recorded.profile)
        await self._client.post(self._path, self._manifest(name_of(recorded), label, _annotations(revision), revision.number, recorded))

    async def mark(self, revision: Revision) -> None:
        """Write the result of a revision that exists.

        Args:
            revision: the revision as read, with the new result and message.
        """
        await self._client.patch(f"{self._path}/{revision.name}", {"metadata": {"annotations": _annotations(revision)}})

    async def remove(self, revision: Revision) -> None:
        """Delete a revision."""
        await self._client.delete(f"{self._path}/{revision.name}")


def _revision(item: msgspec.Raw) -> Revision:
    stored = decode(bytes(item), _Stored)
    notes = stored.metadata.annotations or {}
    return Revision(stored.revision, stored.data, notes.get(RESULT, ""), notes.get(MESSAGE, ""), stored.metadata.name)


def _annotations(revision: Revision) -> dict[str, str]:
    return {RESULT: revision.result, MESSAGE: revision.message[:_MAX_MESSAGE]}


def name_of(recorded: RecordedGeneration) -> str:
    """Build the name of a generation's ControllerRevision from profile, uid and generation, so that two replicas cannot record it twice."""
    short = recorded.profile[:_LONGEST_NAME].rstrip("-.")
    return f"{short}-{_digest(recorded.profile + recorded.uid)}-{recorded.generation}"


def label_of(profile: str) -> str:
    """Build the value of the label `placewright.dev/profile`.

    Returns:
        The name; a name of more than 63 characters is cut and ends with a digest of the whole.
    """
    if len(profile) <= _LONGEST_LABEL:
        return profile
    return f"{profile[:50].rstrip('-.')}-{_digest(profile)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:10]


# --- private keys ------------------------------------------------------------------------------------------------------------------


def without_keys(spec: Mapping[str, Any], instead: str = NOT_KEPT) -> dict[str, Any]:
    """Replace the private keys of a profile's extenders.

    Args:
        spec: a profile's `spec`, or a part of one.
        instead: text in place of each key.

    Returns:
        A copy; the argument is not changed.
    """
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
    """Put back the private keys that `without_keys` replaced.

    Args:
        spec: a recorded `spec`.
        current: the profile's `spec` now; an extender with the same URL gives its key.

    Returns:
        (a copy of `spec` with keys, URLs of the extenders for which there is no key).
    """
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
