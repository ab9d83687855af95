"""Devices and claims to them in a few words: slices, device classes, taint rules and ResourceClaims of resource.k8s.io/v1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from placewright.api.devices import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from placewright.testing.objectmaker import Body, PlainMaker, requirement, uid_of

#: The API's names for the types of an attribute's value.
_ATTRIBUTE_FIELDS: Mapping[type, str] = {bool: "bool", int: "int", str: "string"}
_REACH = ("nodeName", "allNodes", "nodeSelector", "perDeviceNodeSelection")


class SliceMaker(PlainMaker[ResourceSlice]):
    """Builds a ResourceSlice step by step; see `resource_slice`."""

    api_version = "resource.k8s.io/v1"
    namespaced = False

    def pool(self, name: str, *, generation: int = 1, slices: int = 1) -> Self:
        """Name the pool. The allocator takes devices only of pools whose slices are all there.

        Args:
            name: the pool's, unique for its driver.
            generation: the pool's generation; slices of older generations do not count.
            slices: number of slices of the pool. If it is larger than the number of slices there are, the pool is incomplete.

        Returns:
            A new maker; this one stays as it is.
        """
        return self.spec(pool={"name": name, "generation": generation, "resourceSliceCount": slices})

    def on(self, node: str) -> Self:
        """Make the devices reachable from this node alone, in a pool of the node's name unless the slice has one."""
        made = self.spec(nodeName=node)
        return made if "pool" in self._body["spec"] else made.pool(node)

    def on_all_nodes(self) -> Self:
        """Make the devices reachable from every node."""
        return self.spec(allNodes=True)

    def on_nodes_with(self, key: str, *values: str) -> Self:
        """Make the devices reachable from nodes whose label has one of these values."""
        return self.spec(nodeSelector={"nodeSelectorTerms": [{"matchExpressions": [requirement(key, values)]}]})

    def devices(self, *names: str) -> Self:
        """Add devices that have nothing but a name."""
        return self._append("spec", "devices", *({"name": name} for name in names))

    def device(
        self, name: str, *, attributes: Mapping[str, Any] | None = None, capacity: Mapping[str, Any] | None = None, **fields: Any
    ) -> Self:
        """Add a device.

        Args:
            name: unique in the pool.
            attributes: plain values (`str`, `int`, `bool`), or the API's form, such as `{"version": "1.2.3"}`.
            capacity: quantities, or the API's form with a `requestPolicy`.
            fields: other fields of the device, as in a manifest.

        Returns:
            A new maker; this one stays as it is.

        Example:
            resource_slice("a").device("gpu-0", attributes={"model": "T4"}, capacity={"memory": "16Gi"})
        """
        body: Body = {"name": name, **fields}
        if attributes:
            body["attributes"] = {key: _attribute(value) for key, value in attributes.items()}
        if capacity:
            body["capacity"] = {key: value if isinstance(value, Mapping) else {"value": value} for key, value in capacity.items()}
        return self._append("spec", "devices", body)

    @property
    def manifest(self) -> Body:
        """The slice as JSON; without a reach of its own it is that of the node it is named after."""
        found = super().manifest
        spec = {"pool": {"name": self.name, "generation": 1, "resourceSliceCount": 1}, **found["spec"]}
        # The API server wants exactly one of these fields.
        if not spec.keys() & set(_REACH):
            spec["nodeName"] = self.name
        return found | {"spec": spec}


def resource_slice(name: str, *, driver: str = "gpu.example.com") -> SliceMaker:
    """Begin a ResourceSlice without devices, in a pool of its name, reachable from the node of its name.

    Args:
        name: name of the slice and, unless other steps say otherwise, of its pool and its node.
        driver: that publishes it.

    Returns:
        The slice's maker.

    Example:
        resource_slice("a").devices("gpu-0", "gpu-1").build()  # two devices of node `a`
    """
    return SliceMaker(name).spec(driver=driver)


def _attribute(value: Any) -> Any:
    # By the exact type, because `bool` is a subclass of `int`.
    return value if isinstance(value, Mapping) else {_ATTRIBUTE_FIELDS[type(value)]: value}


class DeviceClassMaker(PlainMaker[DeviceClass]):
    """Builds a DeviceClass step by step; see `device_class`."""

    api_version = "resource.k8s.io/v1"
    namespaced = False

    def selects(self, *expressions: str) -> Self:
        """Add expressions in CEL; a device must satisfy all of them: `selects('device.driver == "gpu.example.com"')`."""
        return self._append("spec", "selectors", *_cel(expressions))

    def serves(self, resource: str) -> Self:
        """Let the class serve an extended resource of pods."""
        return self.spec(extendedResourceName=resource)


def device_class(name: str) -> DeviceClassMaker:
    """Begin a DeviceClass that every device belongs to."""
    return DeviceClassMaker(name).spec()


class DeviceTaintRuleMaker(PlainMaker[DeviceTaintRule]):
    """Builds a DeviceTaintRule step by step; see `device_taint_rule`."""

    api_version = "resource.k8s.io/v1alpha3"
    namespaced = False

    def devices(self, *, driver: str = "", pool: str = "", device: str = "") -> Self:
        """Restrict the rule to devices that match all arguments given. A second call replaces the first.

        Args:
            driver: the driver's name; empty: any driver.
            pool: the pool's name; empty: any pool.
            device: the device's name; empty: any device.

        Returns:
            A new maker; this one stays as it is.
        """
        about = {"driver": driver, "pool": pool, "device": device}
        return self.spec(deviceSelector={key: value for key, value in about.items() if value})


def device_taint_rule(name: str, key: str, value: str = "", *, effect: str = "NoSchedule") -> DeviceTaintRuleMaker:
    """Begin a DeviceTaintRule that taints all devices.

    Args:
        name: the rule's.
        key: the taint's key.
        value: the taint's value.
        effect: `NoSchedule`, `NoExecute` or `None`.

    Returns:
        The rule's maker.

    Example:
        device_taint_rule("broken", "example.com/broken").devices(driver="gpu.example.com", pool="a").build()
    """
    return DeviceTaintRuleMaker(name).spec(taint={"key": key, "value": value, "effect": effect})


class ResourceClaimMaker(PlainMaker[ResourceClaim]):
    """Builds a ResourceClaim step by step; see `resource_claim`."""

    api_version = "resource.k8s.io/v1"

    def request(self, device_class: str, *, count: int = 1, name: str = "", cel: Sequence[str] = (), **fields: Any) -> Self:
        """Add a request for devices of one class.

        Args:
            device_class: the class's name.
            count: number of devices; left out of the request if `fields` has an `allocationMode`.
            name: the request's; without one `request-0`, `request-1`, in order.
            cel: expressions that each of the devices must satisfy.
            fields: other fields of `exactly`, as in a manifest: `allocationMode="All"`, `adminAccess=True`.

        Returns:
            A new maker; this one stays as it is.

        Example:
            resource_claim("training").request("gpu", count=2, cel=['device.attributes["gpu.example.com"].model == "T4"'])
        """
        wish: Body = {"deviceClassName": device_class, "count": count, **fields}
        # The API server refuses a count with the mode All; ExactCount is the mode of a request that names none.
        if "allocationMode" in fields:
            del wish["count"]
        if cel:
            wish["selectors"] = _cel(cel)
        return self._request({"name": name or self._next_name, "exactly": wish})

    def request_first_of(self, *device_classes: str, name: str = "") -> Self:
        """Add a request for one device of the first of these classes that can give one.

        Args:
            device_classes: names, the best first. The alternatives are called `choice-0`, `choice-1`, in order.
            name: the request's; without one `request-0`, `request-1`, in order.

        Returns:
            A new maker; this one stays as it is.
        """
        wishes = [{"name": f"choice-{number}", "deviceClassName": each} for number, each in enumerate(device_classes)]
        return self._request({"name": name or self._next_name, "firstAvailable": wishes})

    def alike(self, attribute: str, *requests: str) -> Self:
        """Require the same value of an attribute for the devices of these requests.

        Args:
            attribute: its full name, such as `gpu.example.com/model`.
            requests: names of requests; none: all requests of the claim.

        Returns:
            A new maker; this one stays as it is.
        """
        return self._devices("constraints", {"matchAttribute": attribute} | ({"requests": list(requests)} if requests else {}))

    def allocated(self, *devices: str, driver: str = "gpu.example.com", pool: str, request: str = "request-0") -> Self:
        """Give the claim these devices of a pool. A second call replaces the first.

        Args:
            devices: names of devices in the pool.
            driver: that publishes them.
            pool: the pool's name; with `SliceMaker.on`, the node's.
            request: the request that the devices serve.

        Returns:
            A new maker; this one stays as it is.

        Example:
            resource_claim("training").request("gpu", count=2).allocated("gpu-0", "gpu-1", pool="a").reserved_for("web")
        """
        results = [{"request": request, "driver": driver, "pool": pool, "device": device} for device in devices]
        return self.status(allocation={"devices": {"results": results}})

    def reserved_for(self, *pods: str) -> Self:
        """Let these pods of the claim's namespace use the claim, under the uids that makers give them."""
        users = [{"resource": "pods", "name": each, "uid": uid_of(each, self._namespace)} for each in pods]
        return self.status(reservedFor=users)

    @property
    def _next_name(self) -> str:
        return f"request-{len(self._body.get('spec', {}).get('devices', {}).get('requests', ()))}"

    def _request(self, request: Body) -> Self:
        return self._devices("requests", request)

    def _devices(self, field: str, entry: Body) -> Self:
        kept = self._body.get("spec", {}).get("devices", {})
        return self.spec(devices={**kept, field: [*kept.get(field, ()), entry]})


def resource_claim(name: str) -> ResourceClaimMaker:
    """Begin a ResourceClaim in the namespace `default`, without requests, devices and users.

    Example:
        resource_claim("training").request("gpu", count=2).build()
    """
    return ResourceClaimMaker(name).spec()


def _cel(expressions: Sequence[str]) -> list[Body]:
    return [{"cel": {"expression": each}} for each in expressions]
