"""DynamicResources: claims, and what could give them devices."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from hints.node_rows import asks
from hints.rows import (
    DEVICE_CLAIM_CHANGED,
    DEVICE_CLAIM_DELETED,
    DEVICE_CLASS_ADDED,
    DEVICE_CLASS_CHANGED,
    DEVICE_CLASS_DELETED,
    DEVICES_CLAIMED,
    NODE_ADDED,
    NODE_CONDITION,
    NODE_LABELLED,
    NODE_RESIZED,
    POD_DELETED,
    RULE_ADDED,
    RULE_CHANGED,
    RULE_DELETED,
    SLICE_ADDED,
    SLICE_CHANGED,
    SLICE_DELETED,
    WAITING_GOT_CLAIMS,
    WAITING_LABELLED,
    Rejected,
    Row,
)
from placewright.api.decode import convert
from placewright.api.devices import DeviceClass, DeviceClassSpec, DeviceTaintRule, ResourceClaim, ResourceSlice
from placewright.api.objects import PodResourceClaimStatus
from placewright.api.pods import PodInfo
from placewright.testing import node, pod

CLAIMS: Final = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "mine"}]}
MADE: Final = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one"}]}
ALLOCATION: Final = {"devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "x"}]}}
OTHER: Final = {"devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "y"}]}}
SLICE, CLASS, RULE = ResourceSlice(), DeviceClass(), DeviceTaintRule()


def a_claim(name: str, version: str = "1", owner: str = "", **status: Any) -> ResourceClaim:
    owners = [{"uid": owner, "controller": True}] if owner else []
    meta = {"name": name, "namespace": "default", "uid": name, "resourceVersion": version, "ownerReferences": owners}
    return convert({"metadata": meta, "status": status}, ResourceClaim)


def waiting(*made: str) -> PodInfo:
    """The pod, by whose status such claims were made for it."""
    plain = pod("me", **MADE).build().pod
    statuses = tuple(PodResourceClaimStatus(name="gpu", resource_claim_name=name) for name in made)
    return PodInfo(replace(plain, status=replace(plain.status, resource_claim_statuses=statuses)))


def labelled(one: PodInfo) -> PodInfo:
    return PodInfo(replace(one.pod, metadata=replace(one.pod.metadata, labels={"a": "b"})))


def special(owner: str) -> ResourceClaim:
    """A claim that was made for the extended resources of a pod."""
    plain = a_claim("made", owner=owner)
    return replace(plain, metadata=replace(plain.metadata, annotations={"resource.kubernetes.io/extended-resource-claim": "true"}))


def serving(resource: str) -> DeviceClass:
    return DeviceClass(spec=DeviceClassSpec(extended_resource_name=resource))


MINE: Final = a_claim("mine")
_gpu = Rejected("NodeResourcesFit", asks(**{"vendor.com/gpu": "1"}))
_claims = Rejected("DynamicResources", pod("me", **CLAIMS), known=(MINE,))
HELD: Final = a_claim("held", allocation=ALLOCATION)
_and_free = Rejected("DynamicResources", pod("me", **CLAIMS), known=(MINE, a_claim("free"), HELD, serving("vendor.com/gpu")))
_and_made = Rejected("DynamicResources", pod("me", **CLAIMS), known=(MINE, special("uid-else"), serving("vendor.com/gpu")))


def leaving(*claims: str, **requests: str) -> PodInfo:
    """A pod on a node that has these claims."""
    named = [{"name": name, "resourceClaimName": name} for name in claims]
    containers = [{"name": "main", "resources": {"requests": requests}}]
    return pod("else", on="n", containers=containers, resourceClaims=named).build()


_absent = Rejected("DynamicResources", pod("me", **CLAIMS), gated=True)
_unmade = Rejected("DynamicResources", waiting(), known=(a_claim("made", owner="uid-me"),), gated=True)

ROWS: Final[tuple[Row, ...]] = (
    _claims.wakes("a new node", NODE_ADDED, new=node("n")),
    _claims.wakes("a label of a node", NODE_LABELLED, old=node("n"), new=node("n")),
    _claims.wakes("what a node offers", NODE_RESIZED, old=node("n"), new=node("n")),
    _claims.rests("a node's condition", NODE_CONDITION, old=node("n"), new=node("n")),
    _claims.rests("a pod that leaves a node", POD_DELETED, old=pod("else", on="n")),
    _and_free.wakes("a pod that leaves, and nothing was written into its claim", POD_DELETED, old=leaving("held", "free")),
    _and_free.rests("a pod that leaves, and its claim has the devices still", POD_DELETED, old=leaving("held")),
    _and_free.rests("a pod that leaves, and its claim is gone", POD_DELETED, old=leaving("gone")),
    _and_free.wakes("a pod that leaves, and no claim was made for what it requests", POD_DELETED, old=leaving(**{"vendor.com/gpu": "1"})),
    _and_free.rests("a pod that leaves and requests what no class serves", POD_DELETED, old=leaving(**{"vendor.com/fpga": "1"})),
    _and_made.rests("a pod that leaves, and the claim made for it is there", POD_DELETED, old=leaving(**{"vendor.com/gpu": "1"})),
    _claims.wakes("its claim that is made anew", DEVICES_CLAIMED, new=MINE),
    _claims.rests("another claim that is made", DEVICES_CLAIMED, new=a_claim("else")),
    _claims.wakes("devices given to its claim", DEVICE_CLAIM_CHANGED, old=MINE, new=a_claim("mine", "2", allocation=ALLOCATION)),
    _claims.rests("a label of its claim", DEVICE_CLAIM_CHANGED, old=MINE, new=a_claim("mine", "2")),
    _claims.rests(
        "devices given to another claim", DEVICE_CLAIM_CHANGED, old=a_claim("else"), new=a_claim("else", "2", allocation=ALLOCATION)
    ),
    _claims.wakes(
        "devices taken from another claim", DEVICE_CLAIM_CHANGED, old=a_claim("else", allocation=ALLOCATION), new=a_claim("else", "2")
    ),
    _claims.wakes(
        "other devices given to another claim",
        DEVICE_CLAIM_CHANGED,
        old=a_claim("else", allocation=ALLOCATION),
        new=a_claim("else", "2", allocation=OTHER),
    ),
    _claims.rests("a claim without devices that goes", DEVICE_CLAIM_DELETED, old=a_claim("else")),
    _claims.wakes("a claim with devices that goes", DEVICE_CLAIM_DELETED, old=a_claim("else", allocation=ALLOCATION)),
    _claims.wakes("a claim of an earlier attempt that goes", DEVICE_CLAIM_DELETED, old=special("uid-me")),
    _claims.rests("a claim of another pod's earlier attempt that goes", DEVICE_CLAIM_DELETED, old=special("uid-else")),
    _gpu.wakes("a class for its resource", DEVICE_CLASS_ADDED, new=serving("vendor.com/gpu")),
    _gpu.wakes("a class that now is for its resource", DEVICE_CLASS_CHANGED, old=CLASS, new=serving("vendor.com/gpu")),
    _gpu.rests("a class for another resource", DEVICE_CLASS_ADDED, new=serving("vendor.com/fpga")),
    _gpu.rests("a class for nothing", DEVICE_CLASS_CHANGED, old=CLASS, new=CLASS),
    _gpu.rests("a class that goes", DEVICE_CLASS_DELETED, old=serving("vendor.com/gpu")),
    _absent.wakes("the claim that it waits for", DEVICES_CLAIMED, new=MINE),
    _absent.rests(
        "others lose devices while its claim is missing",
        DEVICE_CLAIM_CHANGED,
        old=a_claim("else", allocation=ALLOCATION),
        new=a_claim("else"),
    ),
    _unmade.wakes("a claim made for it", WAITING_GOT_CLAIMS, old=waiting(), new=waiting("made")),
    _unmade.rests("a claim made for it that is not there yet", WAITING_GOT_CLAIMS, old=waiting(), new=waiting("nowhere")),
    _unmade.rests("a label of its own", WAITING_LABELLED, old=waiting(), new=labelled(waiting())),
    _claims.wakes("a new class", DEVICE_CLASS_ADDED, new=CLASS),
    _claims.wakes("a changed class", DEVICE_CLASS_CHANGED, old=CLASS, new=CLASS),
    _claims.wakes("new devices", SLICE_ADDED, new=SLICE),
    _claims.wakes("changed devices", SLICE_CHANGED, old=SLICE, new=SLICE),
    _claims.rests("devices that go", SLICE_DELETED, old=SLICE),
    _claims.wakes("a new taint of devices", RULE_ADDED, new=RULE),
    _claims.wakes("a changed taint of devices", RULE_CHANGED, old=RULE, new=RULE),
    _claims.wakes("a taint of devices that goes", RULE_DELETED, old=RULE),
)
