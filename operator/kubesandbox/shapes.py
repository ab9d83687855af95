"""How lists and maps of an object merge: by key, as a set, or as one piece.

Strategic merge patches and server-side apply both need to know it, and disagree on details (a container's ports merge
by `containerPort` in the one, by `containerPort` and `protocol` in the other). Built-in kinds have their shapes here,
custom resources get theirs from the schema of their definition. What no shape names is a struct, its lists atomic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

Object = dict[str, Any]
_NONE: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Shape:
    """The merge behaviour of one value.

    `fields` are the named children; `free` says that other keys are user data (labels), each owned by itself.
    `item` is the shape of list elements. For server-side apply a list is keyed (`keys`), a set (`is_set`) or atomic;
    `atomic` makes a map one piece. For strategic merge a list merges by `merge_key`, as a set (`merge_set`) or is
    replaced; `retain_keys` drops what the patch's `$retainKeys` does not name. `optional` objects are absent until
    somebody writes them, which he then owns beside what is in them.
    """

    fields: Mapping[str, Shape] = field(default_factory=lambda: _NONE)
    free: bool = False
    item: Shape | None = None
    keys: tuple[str, ...] = ()
    key_defaults: Mapping[str, Any] = field(default_factory=lambda: _NONE)
    is_set: bool = False
    atomic: bool = False
    merge_key: str = ""
    merge_set: bool = False
    retain_keys: bool = False
    optional: bool = False

    def child(self, name: str) -> Shape:
        """Shape of the value under `name`; a plain one when nothing is known of it."""
        return self.fields.get(name, PLAIN)

    @property
    def element(self) -> Shape:
        """Shape of a list's elements."""
        return self.item or PLAIN

    def key_of(self, element: Mapping[str, Any]) -> tuple[Any, ...]:
        """The values that identify `element` in a keyed list, None where one is missing."""
        return tuple(element.get(key, self.key_defaults.get(key)) for key in self.keys)


PLAIN = Shape()
FREE = Shape(free=True, optional=True)
ATOMIC = Shape(atomic=True)


def shape_of(kind: str, schema: Mapping[str, Any] | None = None) -> Shape:
    """The shape of objects of `kind`; `schema` (openAPIV3Schema) decides for a custom resource."""
    if schema is None:
        return _BUILTIN.get(kind, _ANY_OBJECT)
    return Shape({**from_schema(schema).fields, "metadata": _METADATA})


def from_schema(schema: Mapping[str, Any]) -> Shape:
    """The shape that a structural schema describes with its `x-kubernetes-list-*` and `x-kubernetes-map-type`."""
    if "items" in schema:
        list_type = schema.get("x-kubernetes-list-type", "atomic")
        keys = tuple(schema.get("x-kubernetes-list-map-keys", ())) if list_type == "map" else ()
        item = schema["items"]
        defaults = {k: v["default"] for k, v in item.get("properties", {}).items() if k in keys and "default" in v}
        return Shape(item=from_schema(item), keys=keys, is_set=list_type == "set", key_defaults=defaults)
    properties = schema.get("properties", {})
    return Shape(
        {name: from_schema(part) for name, part in properties.items()},
        free=not properties and bool(schema.get("additionalProperties")),
        atomic=schema.get("x-kubernetes-map-type") == "atomic",
        optional=True,
    )


def _keyed(key: str, item: Shape = PLAIN, *more: str, retain_keys: bool = False, **defaults: str) -> Shape:
    """A list keyed by `key` in both kinds of merge; `more` are the further keys of server-side apply."""
    return Shape(item=item, keys=(key, *more), merge_key=key, retain_keys=retain_keys, key_defaults=defaults)


_STRINGS = Shape(item=PLAIN, is_set=True, merge_set=True)
_SELECTOR = Shape({"matchLabels": FREE}, atomic=True)
_CONDITIONS = _keyed("type")
_METADATA = Shape(
    {
        "labels": FREE,
        "annotations": FREE,
        "finalizers": _STRINGS,
        "ownerReferences": _keyed("uid", ATOMIC),
    }
)
_ANY_OBJECT = Shape({"metadata": _METADATA})
_QUANTITIES = Shape({"limits": FREE, "requests": FREE, "claims": Shape(item=PLAIN, keys=("name",))})
_REF_SOURCES = Shape(dict.fromkeys(("fieldRef", "resourceFieldRef", "secretKeyRef", "configMapKeyRef"), ATOMIC))
_CONTAINER = Shape(
    {
        "ports": _keyed("containerPort", PLAIN, "protocol", protocol="TCP"),
        "env": _keyed("name", Shape({"valueFrom": _REF_SOURCES})),
        "volumeMounts": _keyed("mountPath"),
        "volumeDevices": _keyed("devicePath"),
        "resources": _QUANTITIES,
    }
)
_POD_SPEC = Shape(
    {
        "containers": _keyed("name", _CONTAINER),
        "initContainers": _keyed("name", _CONTAINER),
        "ephemeralContainers": _keyed("name", _CONTAINER),
        "volumes": _keyed("name", retain_keys=True),
        "imagePullSecrets": _keyed("name", ATOMIC),
        "hostAliases": _keyed("ip"),
        "topologySpreadConstraints": _keyed("topologyKey", Shape({"labelSelector": _SELECTOR}), "whenUnsatisfiable"),
        "schedulingGates": _keyed("name"),
        "resourceClaims": _keyed("name", retain_keys=True),
        "nodeSelector": Shape(free=True, atomic=True),
        "overhead": FREE,
        "resources": _QUANTITIES,
    }
)
_POD_STATUS = Shape(
    {
        "conditions": _CONDITIONS,
        "podIPs": _keyed("ip"),
        "hostIPs": Shape(item=PLAIN, merge_key="ip"),
        "resourceClaimStatuses": _keyed("name", retain_keys=True),
    }
)
_TEMPLATE = Shape({"metadata": _METADATA, "spec": _POD_SPEC})
_CONDITIONS_STATUS = Shape({"conditions": _CONDITIONS})


def _workload(**spec: Shape) -> Shape:
    fields = {"selector": _SELECTOR, "template": _TEMPLATE, **spec}
    return Shape({"metadata": _METADATA, "spec": Shape(fields), "status": _CONDITIONS_STATUS})


_JOB = _workload()
_BUILTIN: Mapping[str, Shape] = MappingProxyType(
    {
        "Pod": Shape({"metadata": _METADATA, "spec": _POD_SPEC, "status": _POD_STATUS}),
        "PodTemplate": Shape({"metadata": _METADATA, "template": _TEMPLATE}),
        "Node": Shape(
            {
                "metadata": _METADATA,
                "spec": Shape({"podCIDRs": _STRINGS}),
                "status": Shape(
                    {
                        "conditions": _CONDITIONS,
                        "addresses": _keyed("type"),
                        "capacity": FREE,
                        "allocatable": FREE,
                        "daemonEndpoints": PLAIN,
                    }
                ),
            }
        ),
        "Service": Shape(
            {
                "metadata": _METADATA,
                "spec": Shape(
                    {
                        "ports": _keyed("port", PLAIN, "protocol", protocol="TCP"),
                        "selector": Shape(free=True, atomic=True),
                    }
                ),
                "status": _CONDITIONS_STATUS,
            }
        ),
        "ServiceAccount": Shape({"metadata": _METADATA, "secrets": _keyed("name")}),
        "ConfigMap": Shape({"metadata": _METADATA, "data": FREE, "binaryData": FREE}),
        "Secret": Shape({"metadata": _METADATA, "data": FREE, "stringData": FREE}),
        "Deployment": _workload(strategy=Shape(retain_keys=True)),
        "ReplicaSet": _workload(),
        "ReplicationController": _workload(selector=Shape(free=True, atomic=True)),
        "StatefulSet": _workload(),
        "DaemonSet": _workload(),
        "Job": _JOB,
        "CronJob": Shape(
            {
                "metadata": _METADATA,
                "spec": Shape({"jobTemplate": Shape({"metadata": _METADATA, "spec": _JOB.child("spec")})}),
            }
        ),
        "PodDisruptionBudget": Shape(
            {
                "metadata": _METADATA,
                "spec": Shape({"selector": _SELECTOR}),
                "status": Shape({"conditions": _CONDITIONS, "disruptedPods": FREE}),
            }
        ),
        "ResourceClaim": Shape(
            {
                "metadata": _METADATA,
                "status": Shape(
                    {
                        "reservedFor": _keyed("uid"),
                        "devices": Shape(item=_CONDITIONS_STATUS, keys=("driver", "device", "pool", "shareID")),
                        "allocation": Shape({"nodeSelector": ATOMIC}, optional=True),
                    }
                ),
            }
        ),
        "ResourceClaimTemplate": Shape({"metadata": _METADATA, "spec": Shape({"metadata": _METADATA})}),
        "ResourceSlice": Shape({"metadata": _METADATA, "spec": Shape({"nodeSelector": ATOMIC})}),
        "DeviceTaintRule": Shape({"metadata": _METADATA, "status": _CONDITIONS_STATUS}),
        "PodGroup": Shape({"metadata": _METADATA, "status": _CONDITIONS_STATUS}),
        "PersistentVolumeClaim": Shape(
            {"metadata": _METADATA, "spec": Shape({"resources": _QUANTITIES}), "status": _CONDITIONS_STATUS}
        ),
        "PersistentVolume": Shape({"metadata": _METADATA, "spec": Shape({"capacity": FREE})}),
        "Namespace": Shape({"metadata": _METADATA, "status": _CONDITIONS_STATUS}),
        "CustomResourceDefinition": Shape({"metadata": _METADATA, "status": _CONDITIONS_STATUS}),
    }
)
