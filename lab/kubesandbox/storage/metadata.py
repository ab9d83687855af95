"""The server's own writes into `metadata`, and the metadata that it refuses."""

from __future__ import annotations

import random
import re
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from kubesandbox.kinds.structure import check_structure
from kubesandbox.resources import ResourceType
from kubesandbox.status import ApiError, Object, bad_request, conflict, invalid, modified, not_the_one_meant, unprocessable, unspecific

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_PATH_SEGMENT: Final = re.compile(r"[^/%]+")
#: Characters without vowels and similar digits. Like on the real server, no suffix is a word.
_SUFFIX_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_OWNED_BY_SERVER: Final = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")
NAMESPACE_MISMATCH: Final = "the namespace of the provided object does not match the namespace sent on the request"
#: Groups whose names only have to fit into a path, because roles have names with a colon (`system:node`).
_FREE_NAMES: Final = frozenset({"rbac.authorization.k8s.io"})


@dataclass
class Identity:
    """The source of time, uids and name suffixes of new objects. A test passes a seeded generator and a fixed clock."""

    random: random.Random = field(default_factory=random.Random)
    clock: Callable[[], float] = time.time

    def now(self) -> str:
        """Return the time of this request in Kubernetes' form, in whole seconds."""
        return self.later(0)

    def later(self, seconds: float) -> str:
        """Return the time that many seconds from now."""
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.clock() + seconds))

    def uid(self) -> str:
        """Return a random UUID."""
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def suffix(self) -> str:
        """Return five letters for `generateName`."""
        return "".join(self.random.choices(_SUFFIX_LETTERS, k=5))


def check_object(resource: ResourceType, namespace: str, sent: object) -> Object:
    """Return `sent` as an object of `resource` whose fields have the right types. Raises ApiError 400."""
    sent = {} if sent is None else sent
    if not isinstance(sent, dict):
        raise bad_request(f"{resource.kind}: the body must be an object, found {type(sent).__name__}")
    # Null means absent, as everywhere in Kubernetes.
    for key in [key for key, value in sent.items() if value is None]:
        del sent[key]
    _check_kind(resource, sent)
    check_structure(resource.kind, sent, custom=resource.custom)
    metadata: Object = sent.setdefault("metadata", {})
    for key in [key for key, value in metadata.items() if value is None or value in ({}, [])]:
        del metadata[key]
    _check_namespace(resource, namespace, metadata)
    return sent


def check_patched(resource: ResourceType, patched: Object) -> None:
    """Raise ApiError 422 if a patch changes the object's kind. The same body in an update would be a 400."""
    try:
        _check_kind(resource, patched)
        check_structure(resource.kind, patched, custom=resource.custom)
    except ApiError as refused:
        raise unprocessable(f'"" is invalid: patch: Invalid value: {refused.message}') from refused


def _check_kind(resource: ResourceType, sent: Object) -> None:
    for key, wanted in (("apiVersion", resource.api_version), ("kind", resource.kind)):
        found = sent.setdefault(key, wanted)
        if found != wanted:
            raise bad_request(f"{key} in the body is {found!r}, the request is for {wanted!r}")


def _check_namespace(resource: ResourceType, namespace: str, metadata: Object) -> None:
    if not resource.namespaced:
        metadata.pop("namespace", None)
        return
    found = metadata.setdefault("namespace", namespace) or namespace
    if found != namespace:
        raise bad_request(NAMESPACE_MISMATCH)
    metadata["namespace"] = namespace


def begin(resource: ResourceType, sent: Object, identity: Identity) -> str:
    """Fill the metadata of a new object (name, uid, creationTimestamp, generation). Return its name."""
    metadata: Object = sent["metadata"]
    name = metadata.get("name")
    if not name and metadata.get("generateName"):
        # 58 characters and a suffix of five fit into a label, which has 63 at most.
        name = f"{str(metadata['generateName'])[:58]}{identity.suffix()}"
        metadata["name"] = name
    if not isinstance(name, str) or not name:
        raise invalid(resource, "", [("metadata.name", "Required value: name or generateName is required")])
    check_name(resource, name)
    if metadata.get("resourceVersion"):
        raise unspecific("resourceVersion should not be set on objects to be created")
    # It is dropped and not refused, because people apply the output of `kubectl get -o yaml`.
    for each in (*_OWNED_BY_SERVER, "resourceVersion", "selfLink"):
        metadata.pop(each, None)
    metadata["uid"] = identity.uid()
    metadata["creationTimestamp"] = identity.now()
    if resource.counts_generations:
        metadata["generation"] = 1
    return name


def check_name(resource: ResourceType, name: str) -> None:
    """Raise ApiError 422 for a name that the type does not allow."""
    pattern = _PATH_SEGMENT if resource.group in _FREE_NAMES else _NAME
    if len(name) <= 253 and pattern.fullmatch(name):
        return
    wanted = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', at most 253"
    raise invalid(resource, name, [("metadata.name", f'Invalid value: "{name[:260]}": {wanted}')])


def continue_from(resource: ResourceType, current: Object, sent: Object) -> None:
    """Check an update against the current object, and restore in `sent` the fields of the server.

    Raises ApiError 400 for another name, 409 for another uid or an old resourceVersion, and 422 for a deletion mark.
    """
    metadata: Object = sent["metadata"]
    present: Object = current["metadata"]
    name = present["name"]
    found = metadata.setdefault("name", name)
    if found != name:
        raise bad_request(f"the name of the object ({found}) does not match the name on the URL ({name})")
    check_preconditions(resource, current, metadata.get("uid"), metadata.get("resourceVersion"))
    added = set(metadata.get("finalizers") or ()) - set(present.get("finalizers") or ())
    if "deletionTimestamp" in present and added:
        why = "Forbidden: no new finalizers can be added if the object is being deleted"
        raise invalid(resource, name, [("metadata.finalizers", f"{why}, found new finalizers {sorted(added)}")])
    if "deletionTimestamp" not in present and metadata.get("deletionTimestamp"):
        why = f'Invalid value: "{metadata["deletionTimestamp"]}": field is immutable'
        raise invalid(resource, name, [("metadata.deletionTimestamp", why)])
    for each in _OWNED_BY_SERVER:
        if each in present:
            metadata[each] = present[each]
        else:
            metadata.pop(each, None)
    metadata["resourceVersion"] = present["resourceVersion"]
    metadata.pop("selfLink", None)


def check_uid(resource: ResourceType, current: Object, patched: Object) -> None:
    """Raise ApiError 422 for a patch that would change the uid, because it means another object of that name."""
    uid = (patched.get("metadata") or {}).get("uid")
    if uid and uid != current["metadata"]["uid"]:
        why = f'Invalid value: "{uid}": field is immutable'
        raise invalid(resource, current["metadata"]["name"], [("metadata.uid", why)])


def check_preconditions(resource: ResourceType, current: Object, uid: object, version: object) -> None:
    """Raise ApiError 409 unless the object still has this uid and this resourceVersion, if they are given."""
    metadata = current["metadata"]
    if uid and uid != metadata["uid"]:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {metadata['uid']}"
        raise conflict(resource, metadata["name"], why)
    # 0 stands for any version, like in lists.
    if version and str(version) not in ("0", metadata["resourceVersion"]):
        raise modified(resource, metadata["name"])


def check_deletion(resource: ResourceType, current: Object, uid: object, version: object) -> None:
    """Raise ApiError 409 for a deletion of another object, or of another version of the object."""
    metadata = current["metadata"]
    for what, wanted, found, happened in (
        ("UID", uid, metadata["uid"], "deleted and then recreated"),
        ("ResourceVersion", version, metadata["resourceVersion"], "modified"),
    ):
        if wanted and wanted != found:
            why = f"the {what} in the precondition ({wanted}) does not match the {what} in record ({found})"
            raise not_the_one_meant(resource, metadata["name"], f"{why}. The object might have been {happened}")


def same_desire(resource: ResourceType, current: Object, sent: Object) -> bool:
    """Return whether everything except metadata and status is equal, so that the generation stays.

    A status that is no subresource of its custom type is a normal field.
    """
    aside = {"metadata", "status"} if resource.has_status or not resource.custom else {"metadata"}
    if len(current.keys() - aside) != len(sent.keys() - aside):
        return False
    return all(current.get(key) == value for key, value in sent.items() if key not in aside)
