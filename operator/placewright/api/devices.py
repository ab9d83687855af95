"""Devices and claims to them: the resource.k8s.io group, v1, with the fields that the scheduler reads.

The rules of `api.objects` hold: only fields that placement reads or has to write back are declared, and everything is frozen. Where v1beta1
and v1beta2 spell a field differently, their reader converts it to v1.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from placewright.api.objects import DriverObject, KubeObject, NodeSelector, ObjectMeta, OwnerObject, RawQuantity, Taint, Toleration
from placewright.api.podgroups import NATIVE_GROUP
from placewright.api.writers import WithinBytes, Writer

GROUP: Final = "resource.k8s.io"
#: Finalizer of a claim that has an allocation, so that it cannot vanish while devices are set aside for it.
ALLOCATION_FINALIZER: Final = "resource.kubernetes.io/delete-protection"
#: Annotation with the value `true` on claims that serve a pod's extended resources.
EXTENDED_CLAIM: Final = "resource.kubernetes.io/extended-resource-claim"
#: An extended resource of this name and that of a class is served by the class.
IMPLICIT_RESOURCE: Final = "deviceclass.resource.kubernetes.io/"
#: Pods that may share a claim.
MAX_RESERVED_FOR: Final = 256
#: Devices that one claim may get.
MAX_RESULTS: Final = 32
EXACT_COUNT: Final = "ExactCount"
ALL_DEVICES: Final = "All"


class ClaimMeta(ObjectMeta, frozen=True):
    """`metadata` of a claim; its finalizers are written back."""

    finalizers: tuple[str, ...] | None = None


# --- published by drivers ----------------------------------------------------------------------------------------------------


class DeviceAttribute(KubeObject, frozen=True):
    """A property of a device; exactly one field is set."""

    number: int | None = msgspec.field(default=None, name="int")
    truth: bool | None = msgspec.field(default=None, name="bool")
    text: str | None = msgspec.field(default=None, name="string")
    version: str | None = None
    numbers: tuple[int, ...] | None = msgspec.field(default=None, name="ints")
    truths: tuple[bool, ...] | None = msgspec.field(default=None, name="bools")
    texts: tuple[str, ...] | None = msgspec.field(default=None, name="strings")
    versions: tuple[str, ...] | None = None


class CapacityRange(KubeObject, frozen=True):
    """The amounts of a capacity that a request may ask for: from `min` to `max`, in steps."""

    min: RawQuantity | None = None
    max: RawQuantity | None = None
    step: RawQuantity | None = None


class CapacityPolicy(KubeObject, frozen=True):
    """How requests of a shared device's capacity are rounded."""

    default: RawQuantity | None = None
    valid_values: tuple[RawQuantity, ...] | None = None
    valid_range: CapacityRange | None = None


class DeviceCapacity(KubeObject, frozen=True):
    """An amount that a device has."""

    value: RawQuantity = "0"
    request_policy: CapacityPolicy | None = None


class Counter(KubeObject, frozen=True):
    """An amount in a counter set."""

    value: RawQuantity = "0"


class CounterSet(KubeObject, frozen=True):
    """Amounts that the devices of a pool share; partitions of one piece of hardware draw on them."""

    name: str = ""
    counters: dict[str, Counter] | None = None


class CounterConsumption(KubeObject, frozen=True):
    """The amounts that a device takes from a counter set while it is allocated."""

    counter_set: str = ""
    counters: dict[str, Counter] | None = None


class DeviceTaint(Taint, frozen=True):
    """Keeps claims without a toleration away from a device; effects None, NoSchedule and NoExecute."""

    time_added: str | None = None


class DeviceToleration(Toleration, frozen=True):
    """A taint that a request tolerates."""

    operator: str = "Equal"
    toleration_seconds: int | None = None


class NodeResourceMapping(KubeObject, frozen=True):
    """The amount of a node's resource that an allocated device takes, by a consumed capacity or as a whole.

    `allocation_multiplier` is the spelling of 1.36 for both multipliers.
    """

    capacity_key: str | None = None
    capacity_multiplier: RawQuantity | None = None
    device_multiplier: RawQuantity | None = None
    allocation_multiplier: RawQuantity | None = None


class NodeResourceOverheads(KubeObject, frozen=True):
    """The amounts of a node's resource that a pod takes beside the device, once and for each container with it."""

    per_pod: RawQuantity | None = None
    per_container: RawQuantity | None = None


class NodeAllocatableResource(KubeObject, frozen=True):
    """The use that a device makes of a node's resource."""

    mapping: NodeResourceMapping | None = None
    overhead: NodeResourceOverheads | None = None


class NodeReach(KubeObject, frozen=True):
    """The nodes that can use devices; at most one field is set."""

    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None


class Device(NodeReach, frozen=True):
    """One device of a slice."""

    name: str = ""
    attributes: dict[str, DeviceAttribute] | None = None
    capacity: dict[str, DeviceCapacity] | None = None
    consumes_counters: tuple[CounterConsumption, ...] | None = None
    taints: tuple[DeviceTaint, ...] | None = None
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] | None = None
    binding_failure_conditions: tuple[str, ...] | None = None
    allow_multiple_allocations: bool | None = None
    node_allocatable_resources: dict[str, NodeAllocatableResource] | None = None
    #: Spelling of 1.36 for mappings.
    node_allocatable_resource_mappings: dict[str, NodeResourceMapping] | None = None


class ResourcePool(KubeObject, frozen=True):
    """The pool of a slice; only slices of the highest generation count, and only when all of them are there."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 1


class ResourceSliceSpec(NodeReach, frozen=True):
    """`spec` of a ResourceSlice. Exactly one of `node_name`, `node_selector`, `all_nodes` and `per_device_node_selection` is set."""

    driver: str = ""
    pool: ResourcePool = ResourcePool()
    per_device_node_selection: bool | None = None
    devices: tuple[Device, ...] | None = None
    shared_counters: tuple[CounterSet, ...] | None = None


class ResourceSlice(DriverObject, frozen=True):
    """Devices that one driver publishes, of one pool."""

    spec: Annotated[ResourceSliceSpec, Writer.DRIVER] = ResourceSliceSpec()


class CelSelector(KubeObject, frozen=True):
    """An expression over `device` that must be true."""

    expression: str = ""


class DeviceSelector(KubeObject, frozen=True):
    """One condition on a device."""

    cel: CelSelector | None = None


class DeviceClassSpec(KubeObject, frozen=True):
    """`spec` of a DeviceClass; its `config` is copied into allocations as it is."""

    selectors: tuple[DeviceSelector, ...] | None = None
    config: tuple[msgspec.Raw, ...] | None = None
    extended_resource_name: str | None = None


class DeviceClass(OwnerObject, frozen=True):
    """A kind of device, as requests name it."""

    spec: Annotated[DeviceClassSpec, Writer.OWNER] = DeviceClassSpec()


class DeviceTaintSelector(KubeObject, frozen=True):
    """The devices that a taint rule is about; a field that is not set selects all."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(KubeObject, frozen=True):
    """`spec` of a DeviceTaintRule."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRule(OwnerObject, frozen=True):
    """A taint that an administrator puts on devices, in addition to the taints of their driver."""

    spec: Annotated[DeviceTaintRuleSpec, Writer.OWNER] = DeviceTaintRuleSpec()


# --- claims ------------------------------------------------------------------------------------------------------------------


class CapacityRequirements(KubeObject, frozen=True):
    """The amounts of a device's capacity that a request needs."""

    requests: dict[str, RawQuantity] | None = None


class DeviceWish(KubeObject, frozen=True):
    """Devices of one class."""

    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] | None = None
    allocation_mode: str = EXACT_COUNT
    count: int = 1
    tolerations: tuple[DeviceToleration, ...] | None = None
    capacity: CapacityRequirements | None = None


class ExactDeviceRequest(DeviceWish, frozen=True):
    """The only way to serve a request."""

    admin_access: bool | None = None


class DeviceSubRequest(DeviceWish, frozen=True):
    """One of several ways to serve a request, by preference."""

    name: str = ""


class DeviceRequest(KubeObject, frozen=True):
    """One request of a claim; `exactly` or `first_available` is set, and neither if the API server knows a third way."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] | None = None


class DeviceConstraint(KubeObject, frozen=True):
    """An attribute that devices must share, or in which they must differ. It is about all requests if none is named."""

    requests: tuple[str, ...] | None = None
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaim(KubeObject, frozen=True):
    """`spec.devices` of a claim; its `config` is copied into allocations as it is."""

    requests: tuple[DeviceRequest, ...] | None = None
    constraints: tuple[DeviceConstraint, ...] | None = None
    config: tuple[msgspec.Raw, ...] | None = None


class ResourceClaimSpec(KubeObject, frozen=True):
    """`spec` of a ResourceClaim."""

    devices: Annotated[DeviceClaim, WithinBytes(262_144)] = DeviceClaim()


class DeviceShare(KubeObject, frozen=True):
    """A device by its name in its pool, or a share of it."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = msgspec.field(default=None, name="shareID")


class AllocatedDevice(DeviceShare, frozen=True):
    """A device that a request got; `request` is `name`, or `name/subrequest` of a list of preferences."""

    request: str = ""
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] | None = None
    binding_conditions: tuple[str, ...] | None = None
    binding_failure_conditions: tuple[str, ...] | None = None
    consumed_capacity: dict[str, RawQuantity] | None = None


class AllocatedDevices(KubeObject, frozen=True):
    """`status.allocation.devices` of a claim."""

    results: tuple[AllocatedDevice, ...] | None = None
    config: tuple[msgspec.Raw, ...] | None = None


class AllocationResult(KubeObject, frozen=True):
    """The devices that a claim got, and the nodes from which it can be used."""

    devices: AllocatedDevices = AllocatedDevices()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ConsumerReference(KubeObject, frozen=True):
    """A consumer of a claim: a pod, without an API group, or a PodGroup of Kubernetes."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""

    @classmethod
    def of_pod(cls, name: str, uid: str) -> ConsumerReference:
        """Refer to a pod."""
        return cls(resource="pods", name=name, uid=uid)

    @classmethod
    def of_pod_group(cls, name: str, uid: str) -> ConsumerReference:
        """Refer to a PodGroup."""
        return cls(api_group=NATIVE_GROUP, resource="podgroups", name=name, uid=uid)


class DeviceCondition(KubeObject, frozen=True):
    """A condition that a driver reports of an allocated device."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class DeviceStatus(DeviceShare, frozen=True):
    """`status.devices[]` of a claim."""

    conditions: tuple[DeviceCondition, ...] | None = None


class ResourceClaimStatus(KubeObject, frozen=True):
    """`status` of a ResourceClaim."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ConsumerReference, ...] | None = None
    devices: tuple[DeviceStatus, ...] | None = None


class ResourceClaim(KubeObject, frozen=True):
    """A demand for devices, and the devices that it got."""

    metadata: Annotated[ClaimMeta, Writer.TENANT] = ClaimMeta()
    spec: Annotated[ResourceClaimSpec, Writer.TENANT] = ResourceClaimSpec()
    status: Annotated[ResourceClaimStatus, Writer.CONTROL_PLANE] = ResourceClaimStatus()


def devices_of(allocation: AllocationResult) -> list[tuple[str, ...]]:
    """List the devices that an allocation gives to each request. Two allocations with equal lists are the same.

    Returns:
        (request, driver, pool, device, share id) for each device.
    """
    return [(each.request, each.driver, each.pool, each.device, each.share_id or "") for each in allocation.devices.results or ()]
