"""Which resources are GPUs, and how many GPUs an amount of them is."""

from __future__ import annotations

from collections.abc import Mapping

from placewright.api.requests import is_extended_resource
from placewright_lab.readers.openb import GPU_MILLI


def is_gpu(resource: str) -> bool:
    """Vendors' names have nothing else in common: `nvidia.com/gpu`, `gpu.intel.com/xe`."""
    return is_extended_resource(resource) and "gpu" in resource


def whole_gpus(resource: str, amount: float) -> float:
    """The trace counts thousandths of GPUs, everybody else whole ones."""
    return amount / 1000 if resource == GPU_MILLI else amount


def gpus_in(amounts: Mapping[str, int]) -> float:
    """How many GPUs these amounts, by resource, come to."""
    return sum(whole_gpus(resource, amount) for resource, amount in amounts.items() if is_gpu(resource))
