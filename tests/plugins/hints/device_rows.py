"""DynamicResources: claims, and what could give them devices."""

from __future__ import annotations

from typing import Final

from hints.rows import Rejected, Row
from placewright.testing import device_class, device_taint_rule, node, pod, resource_claim, resource_slice

ME: Final = pod("me").resource_claims("mine")
#: A pod whose claim is made from a template; its status names the claim once there is one.
WAITING: Final = pod("me", resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "one"}])
GOT_MADE, GOT_ABSENT = (WAITING.status(resourceClaimStatuses=[{"name": "gpu", "resourceClaimName": name}]) for name in ("made", "absent"))
NODE, ON_NODE = node("n"), pod("else", on="n")
CLAIM, OTHER_CLAIM = resource_claim("mine"), resource_claim("else")
RESERVED: Final = CLAIM.allocated("x", pool="p").reserved_for("me")
GIVEN, OTHER_GIVEN = CLAIM.allocated("x", pool="p"), OTHER_CLAIM.allocated("x", pool="p")
SLICE, CLASS, RULE = resource_slice("n"), device_class("c"), device_taint_rule("r", "k")
GPU, FPGA = {"vendor.com/gpu": "1"}, {"vendor.com/fpga": "1"}
SERVES_GPU, SERVES_FPGA = CLASS.serves("vendor.com/gpu"), CLASS.serves("vendor.com/fpga")
#: Claims that were made for the extended resources of pods.
SPECIAL: Final = resource_claim("made").annotations({"resource.kubernetes.io/extended-resource-claim": "true"})
OF_ME, OF_ELSE = SPECIAL.owned_by("Pod", "me"), SPECIAL.owned_by("Pod", "else")

_gpu = Rejected("NodeResourcesFit", pod("me").requests(GPU))
_claims = Rejected("DynamicResources", ME, known=(CLAIM,))
_held = resource_claim("held").allocated("x", pool="p")
_and_free = Rejected("DynamicResources", ME, known=(CLAIM, resource_claim("free"), _held, SERVES_GPU))
_and_made = Rejected("DynamicResources", ME, known=(CLAIM, OF_ELSE, SERVES_GPU))
_and_mapped = Rejected(
    "DynamicResources", ME, known=(CLAIM, SLICE.device("d", nodeAllocatableResourceMappings={"cpu": {"allocationMultiplier": "1"}}))
)
_absent = Rejected("DynamicResources", ME, gated=True)
_unmade = Rejected("DynamicResources", WAITING, known=(resource_claim("made").owned_by("Pod", "me"),), gated=True)

ROWS: Final[tuple[Row, ...]] = (
    _claims.wakes("a new node", new=NODE),
    _claims.wakes("a label of a node", "node_label", old=NODE, new=NODE),
    _claims.wakes("what a node offers", "node_allocatable", old=NODE, new=NODE),
    _claims.rests("a node's condition", "node_condition", old=NODE, new=NODE),
    _claims.rests("a pod that leaves a node", old=ON_NODE),
    _and_mapped.wakes("a pod that leaves its node, whose CPU devices take, too", old=ON_NODE),
    _and_free.wakes("a pod that leaves, and nothing was written into its claim", old=ON_NODE.resource_claims("held", "free")),
    _and_free.rests("a pod that leaves, and its claim has the devices still", old=ON_NODE.resource_claims("held")),
    _and_free.rests("a pod that leaves, and its claim is gone", old=ON_NODE.resource_claims("gone")),
    _and_free.wakes("a pod that leaves, and no claim was made for what it requests", old=ON_NODE.requests(GPU)),
    _and_free.rests("a pod that leaves and requests what no class serves", old=ON_NODE.requests(FPGA)),
    _and_made.rests("a pod that leaves, and the claim made for it is there", old=ON_NODE.requests(GPU)),
    _claims.wakes("its claim that is made anew", new=CLAIM),
    _claims.rests("another claim that is made", new=OTHER_CLAIM),
    _claims.wakes("devices given to its claim", old=CLAIM, new=GIVEN),
    _claims.wakes("its claim that is deleted and lists it", old=RESERVED, new=RESERVED.deleting()),
    _claims.rests(
        "its claim that is deleted and lists another pod", old=CLAIM, new=CLAIM.allocated("x", pool="p").reserved_for("else").deleting()
    ),
    _claims.rests("a label of its claim", old=CLAIM, new=CLAIM),
    _claims.rests("devices given to another claim", old=OTHER_CLAIM, new=OTHER_GIVEN),
    _claims.wakes("devices taken from another claim", old=OTHER_GIVEN, new=OTHER_CLAIM),
    _claims.wakes("other devices given to another claim", old=OTHER_GIVEN, new=OTHER_CLAIM.allocated("y", pool="p")),
    _claims.rests("a claim without devices that goes", old=OTHER_CLAIM),
    _claims.wakes("a claim with devices that goes", old=OTHER_GIVEN),
    _claims.wakes("a claim of an earlier attempt that goes", old=OF_ME),
    _claims.rests("a claim of another pod's earlier attempt that goes", old=OF_ELSE),
    _gpu.wakes("a class for its resource", new=SERVES_GPU),
    _gpu.wakes("a class that now is for its resource", old=CLASS, new=SERVES_GPU),
    _gpu.rests("a class for another resource", new=SERVES_FPGA),
    _gpu.rests("a class for nothing", old=CLASS, new=CLASS),
    _gpu.rests("a class that goes", old=SERVES_GPU),
    _absent.wakes("the claim that it waits for", new=CLAIM),
    _absent.rests("others lose devices while its claim is missing", old=OTHER_GIVEN, new=OTHER_CLAIM),
    _unmade.wakes("a claim made for it", "pod_generated_claim", old=WAITING, new=GOT_MADE),
    _unmade.rests("a claim made for it that is not there yet", "pod_generated_claim", old=WAITING, new=GOT_ABSENT),
    _unmade.rests("a label of its own", "pod_label", old=WAITING, new=WAITING.labels(a="b")),
    _claims.wakes("a new class", new=CLASS),
    _claims.wakes("a changed class", old=CLASS, new=CLASS),
    _claims.wakes("new devices", new=SLICE),
    _claims.wakes("changed devices", old=SLICE, new=SLICE),
    _claims.rests("devices that go", old=SLICE),
    _claims.wakes("a new taint of devices", new=RULE),
    _claims.wakes("a changed taint of devices", old=RULE, new=RULE),
    _claims.wakes("a taint of devices that goes", old=RULE),
)
