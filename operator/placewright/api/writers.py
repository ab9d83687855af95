"""Declares beside a field who may write it, and which count bounds it.

A top-level field of each decoded kind names its writer; the fields below it have the same one. What a tenant may write is bounded:

- The bytes of metadata and spec bound each field of a pod. A count of `api.podextent` bounds each list that a decision looks at.
- In all other kinds, each field of a tenant's section is bounded by its bytes (`api.objectbounds`).

    spec: Annotated[PodSpec, Writer.TENANT] = PodSpec()
    tolerations: Annotated[tuple[Toleration, ...] | None, counted("tolerations")] = None
    devices: Annotated[DeviceClaim, WithinBytes(262_144)] = DeviceClaim()

A test walks all kinds that the scheduler decodes, and builds an object just over each bound.
"""

from __future__ import annotations

import enum
from typing import Final, NamedTuple

#: Bytes of JSON of one field of a tenant's section, such as `spec.selector`; real ones have some hundred.
FIELD_BYTES: Final = 32_768


class Writer(enum.Enum):
    """The users who may write a field."""

    TENANT = "tenant"
    OWNER = "cluster's owner"
    KUBELET = "kubelet"
    DRIVER = "driver"
    CONTROL_PLANE = "control plane"


class Counted(NamedTuple):
    """Names of counts of `PodExtent`. Which of them counts a field follows from its place in the pod."""

    names: tuple[str, ...]


class Characters(NamedTuple):
    """Characters that a text may have; a longer one cannot be read."""

    most: int


class WithinBytes(NamedTuple):
    """Bytes of JSON that a field may have, if it is not `FIELD_BYTES`."""

    most: int


def counted(*names: str) -> Counted:
    """Declare the counts that bound a list or a map of a pod."""
    return Counted(names)
