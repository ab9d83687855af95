"""Arguments of VolumeBinding, as in KubeSchedulerConfiguration v1."""

from __future__ import annotations

from typing import Final

import msgspec

from placewright.plugins.noderesources.args import ShapePoint

#: (path inside args, what was found, what is allowed)
Problem = tuple[str, str, str]
_MAX_UTILIZATION: Final = 100
_MAX_SHAPE_SCORE: Final = 10


class VolumeBindingArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """How long a pod may wait for its volumes (seconds), and how nodes are scored by how full their storage gets.

    Without a shape nodes are not scored, which is the default of kube-scheduler 1.36, where a shape needs the feature gate
    StorageCapacityScoring. Here it needs nothing.
    """

    bind_timeout_seconds: int = 600
    shape: tuple[ShapePoint, ...] | None = None

    def validate(self) -> list[Problem]:
        """The timeout's sign, and the shape's corners."""
        problems: list[Problem] = []
        if self.bind_timeout_seconds < 0:
            problems.append(("bindTimeoutSeconds", str(self.bind_timeout_seconds), "0 or more"))
        if self.shape is not None:
            problems.extend(_shape_problems(self.shape))
        return problems


def _shape_problems(shape: tuple[ShapePoint, ...]) -> list[Problem]:
    if not shape:
        return [("shape", "[]", "at least one point")]
    problems: list[Problem] = []
    before = -1
    for i, point in enumerate(shape):
        if not 0 <= point.utilization <= _MAX_UTILIZATION:
            problems.append((f"shape[{i}].utilization", str(point.utilization), f"0 to {_MAX_UTILIZATION}"))
        elif point.utilization <= before:
            problems.append((f"shape[{i}].utilization", str(point.utilization), "more than the point before"))
        if not 0 <= point.score <= _MAX_SHAPE_SCORE:
            problems.append((f"shape[{i}].score", str(point.score), f"0 to {_MAX_SHAPE_SCORE}"))
        before = point.utilization
    return problems
