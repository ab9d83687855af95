"""Arguments of ServiceAffinity, as in KubeSchedulerConfiguration v1beta1."""

from __future__ import annotations

from typing import Annotated

import msgspec

from placewright.framework.constraints import not_empty

Label = Annotated[str, not_empty("the key of a node label")]


class ServiceAffinityArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Keys of node labels: those whose values a Service's pods share, and those over whose values they are spread."""

    affinity_labels: tuple[Label, ...] = ()
    anti_affinity_labels_preference: tuple[Label, ...] = ()
