"""The defaults that the API server writes into objects of the resource.k8s.io group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubesandbox.status import Object

GROUP: Final = "resource.k8s.io"
EXACT_COUNT: Final = "ExactCount"


def default_devices(kind: str, new: Object, now: str) -> None:
    """Fill in the defaults of one object in place: the number of devices of a request, and the time of a taint."""
    spec = new.get("spec") or {}
    if kind == "ResourceClaimTemplate":
        spec = spec.get("spec") or {}
    if kind in ("ResourceClaim", "ResourceClaimTemplate"):
        for request in _requests(spec):
            _default_request(request)
    elif kind == "ResourceSlice":
        for device in spec.get("devices") or ():
            for taint in device.get("taints") or ():
                _since(taint, now)
    elif kind == "DeviceTaintRule" and spec.get("taint"):
        _since(spec["taint"], now)


def _requests(spec: Object) -> Iterator[Object]:
    for request in (spec.get("devices") or {}).get("requests") or ():
        if request.get("exactly") is not None:
            yield request["exactly"]
        yield from request.get("firstAvailable") or ()


def _default_request(request: Object) -> None:
    if not request.get("allocationMode"):
        request["allocationMode"] = EXACT_COUNT
    if request["allocationMode"] == EXACT_COUNT and not request.get("count"):
        request["count"] = 1
    for toleration in request.get("tolerations") or ():
        if not toleration.get("operator"):
            toleration["operator"] = "Equal"


def _since(taint: Object, now: str) -> None:
    if not taint.get("timeAdded"):
        taint["timeAdded"] = now
