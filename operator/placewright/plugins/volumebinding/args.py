"""Arguments of VolumeBinding, as in KubeSchedulerConfiguration v1."""

from __future__ import annotations

from typing import Annotated

import msgspec

from placewright.framework.constraints import within
from placewright.plugins.noderesources.args import ShapePoint

#: (path inside args, what was found, what is allowed)
Problem = tuple[str, str, str]


class VolumeBindingArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """How long a pod may wait for its volumes (seconds), and how nodes are scored by how full their storage gets.

    Without a shape nodes are not scored, which is the default of kube-scheduler 1.36, where a shape needs the feature gate
    StorageCapacityScoring. Here it needs nothing.
    """

    bind_timeout_seconds: Annotated[int, within(0)] = 600
    shape: tuple[ShapePoint, ...] | None = None

    def validate(self) -> list[Problem]:
        """A shape has corners, and they rise."""
        return [] if self.shape is None else _shape_problems(self.shape)


def _shape_problems(shape: tuple[ShapePoint, ...]) -> list[Problem]:
    if not shape:
        return [("shape", "[]", "at least one point")]
    problems: list[Problem] = []
    before = -1
    for i, point in enumerate(shape):
        if point.utilization <= before:
            problems.append((f"shape[{i}].utilization", str(point.utilization), "more than the point before"))
        before = point.utilization
    return problems
