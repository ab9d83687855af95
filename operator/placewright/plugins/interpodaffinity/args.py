"""Arguments of InterPodAffinity, as in KubeSchedulerConfiguration v1."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from placewright.framework.constraints import within

_MAX_WEIGHT: Final = 100


class InterPodAffinityArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """How much the required affinity of existing pods counts in a newcomer's score, and whether their preferences count at all.

    `ignore_preferred_terms_of_existing_pods` has an effect only for newcomers without preferred terms, as upstream.
    """

    hard_pod_affinity_weight: Annotated[int, within(0, _MAX_WEIGHT)] = 1
    ignore_preferred_terms_of_existing_pods: bool = False
