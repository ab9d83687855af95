"""The base of all makers: an API object built step by step, decoded as the scheduler decodes it.

A maker never changes. Every step returns another maker, so one maker can begin many objects, or many versions of one object. `build`
decodes the manifest with `placewright.api.decode`, as the scheduler decodes objects of the API server. So a wrong field fails here as it
would fail there.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from copy import copy
from typing import Any, Final, Generic, Self, TypeVar, get_args

from placewright.api.decode import convert
from placewright.api.objects import KubeObject

Body = dict[str, Any]
T = TypeVar("T", bound=KubeObject)

#: The namespace of every namespaced object that names no other.
DEFAULT_NAMESPACE: Final = "default"
HOSTNAME: Final = "kubernetes.io/hostname"
REGION: Final = "topology.kubernetes.io/region"
ZONE: Final = "topology.kubernetes.io/zone"
#: When an object is being deleted and the test names no moment. Only that there is one matters.
DELETED_AT: Final = "2026-01-01T00:00:00Z"

#: One count for all objects of a process, so that in every world a newer version has a larger number.
_versions = itertools.count(1)


def next_version() -> str:
    """Return a resourceVersion that no object had before; newer ones are larger numbers, as an API server's."""
    return str(next(_versions))


class ObjectMaker(Generic[T]):
    """Builds objects of one kind.

    Attributes:
        name: the object's.
    """

    #: The class that `build` decodes into.
    kind: type[T]
    #: The kind in manifests, if the class has another name.
    _kind_name = ""
    api_version = "v1"
    namespaced = True

    def __init_subclass__(cls) -> None:
        """Take the kind from the type argument of the class, as in `PlainMaker[Node]`."""
        super().__init_subclass__()
        for kind in get_args(*vars(cls).get("__orig_bases__", (None,))):
            if isinstance(kind, type):
                cls.kind = kind

    def __init__(self, name: str) -> None:
        self.name = name
        self._namespace = DEFAULT_NAMESPACE if self.namespaced else ""
        self._metadata: Body = {}
        self._body: Body = {}

    # --- metadata ----------------------------------------------------------------------------------------------------------------

    def namespace(self, namespace: str) -> Self:
        """Put the object into this namespace."""
        return self._changed(_namespace=namespace)

    def uid(self, uid: str) -> Self:
        """Set the uid. Without this it is `uid-NAME`, or `uid-NAMESPACE-NAME` outside the namespace `default`."""
        return self.metadata(uid=uid)

    def labels(self, labels: Mapping[str, str] | None = None, /, **more: str) -> Self:
        """Add labels; a mapping takes keys that are no Python names."""
        return self.metadata(labels={**self._metadata.get("labels", {}), **(labels or {}), **more})

    def annotations(self, annotations: Mapping[str, str] | None = None, /, **more: str) -> Self:
        """Add annotations; a mapping takes keys that are no Python names."""
        return self.metadata(annotations={**self._metadata.get("annotations", {}), **(annotations or {}), **more})

    def created(self, when: str) -> Self:
        """Set the creation timestamp, RFC 3339."""
        return self.metadata(creationTimestamp=when)

    def deleting(self, since: str = DELETED_AT) -> Self:
        """Mark the object as being deleted."""
        return self.metadata(deletionTimestamp=since)

    def owned_by(self, kind: str, name: str, *, uid: str = "", api_version: str = "apps/v1", controller: bool = True) -> Self:
        """Add an owner in the same namespace.

        Args:
            kind: the owner's, such as `ReplicaSet`.
            name: the owner's.
            uid: the owner's; empty: the one that makers give an object of this name.
            api_version: API version of the owner's kind; the default is that of a ReplicaSet and a StatefulSet.
            controller: whether the owner is the controller. An object has at most one.

        Returns:
            A new maker; this one stays as it is.

        Example:
            pod("web-1").owned_by("ReplicaSet", "web")
        """
        uid = uid or uid_of(name, self._namespace)
        owner = {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": controller}
        return self.metadata(ownerReferences=[*self._metadata.get("ownerReferences", ()), owner])

    def version(self, version: str) -> Self:
        """Set the resourceVersion. Without this every `build` gives a newer one, as every write to an API server does."""
        return self.metadata(resourceVersion=version)

    def metadata(self, **fields: Any) -> Self:
        """Set fields of the metadata, spelled as in a manifest."""
        return self._changed(_metadata={**self._metadata, **fields})

    # --- the rest ----------------------------------------------------------------------------------------------------------------

    def spec(self, **fields: Any) -> Self:
        """Set fields of the spec, spelled as in a manifest: for the fields that no other step sets."""
        return self._set("spec", **fields)

    def status(self, **fields: Any) -> Self:
        """Set fields of the status, spelled as in a manifest."""
        return self._set("status", **fields)

    def _set(self, section: str, **fields: Any) -> Self:
        return self._changed(_body={**self._body, section: {**self._body.get(section, {}), **fields}})

    def _append(self, section: str, field: str, *entries: Any) -> Self:
        return self._set(section, **{field: [*self._body.get(section, {}).get(field, ()), *entries]})

    def _top(self, **fields: Any) -> Self:
        """Set fields beside `metadata`, for kinds that have no spec."""
        return self._changed(_body={**self._body, **fields})

    def _changed(self, **attributes: Any) -> Self:
        """Return another maker that differs in these attributes."""
        # A shallow copy is enough: steps replace dictionaries and never write into them.
        made = copy(self)
        vars(made).update(attributes)
        return made

    # --- the object --------------------------------------------------------------------------------------------------------------

    @property
    def manifest(self) -> Body:
        """The object as JSON, with `apiVersion` and `kind`, without a resourceVersion unless one was set."""
        meta: Body = {"name": self.name}
        if self._namespace:
            meta["namespace"] = self._namespace
        meta["uid"] = uid_of(self.name, self._namespace)
        # The steps' fields come last, so that `uid` replaces the uid above.
        kind = self._kind_name or self.kind.__name__
        return {"apiVersion": self.api_version, "kind": kind, "metadata": meta | self._metadata, **self._body}

    def decoded(self) -> T:
        """Decode the manifest, with a newer resourceVersion than any object before unless one was set; raise `DecodeError`."""
        manifest = self.manifest
        manifest["metadata"].setdefault("resourceVersion", next_version())
        return convert(manifest, self.kind)


class PlainMaker(ObjectMaker[T]):
    """A maker whose objects travel as they are decoded: everything but pods."""

    def build(self) -> T:
        """Decode the object.

        Raises:
            DecodeError: a field does not have the shape of its kind; the message names the field.
        """
        return self.decoded()


def uid_of(name: str, namespace: str = DEFAULT_NAMESPACE) -> str:
    """Return the uid that makers give an object; never its name, so that a test notices where one is taken for the other.

    Args:
        name: the object's.
        namespace: the object's; empty for kinds without namespaces.
    """
    return f"uid-{name}" if namespace in {"", DEFAULT_NAMESPACE} else f"uid-{namespace}-{name}"


def requirement(key: str, values: tuple[str, ...], operator: str = "") -> Body:
    """Make one expression of a selector.

    Args:
        key: the label's.
        values: the label's, for operators that compare it.
        operator: the operator, as in a manifest; empty: `In` if there are values, else `Exists`.

    Returns:
        An entry of `matchExpressions`, as JSON.
    """
    found = {"key": key, "operator": operator or ("In" if values else "Exists")}
    return found | ({"values": list(values)} if values else {})
