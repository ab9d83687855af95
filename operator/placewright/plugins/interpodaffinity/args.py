"""Arguments of InterPodAffinity, as in KubeSchedulerConfiguration v1."""

from __future__ import annotations

from typing import Final

import msgspec

#: (path inside args, what was found, what is allowed)
Problem = tuple[str, str, str]
_MAX_WEIGHT: Final = 100


class InterPodAffinityArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """How much the required affinity of existing pods counts in a newcomer's score, and whether their preferences count at all.

    `ignore_preferred_terms_of_existing_pods` has an effect only for newcomers without preferred terms, as upstream.
    """

    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False

    def validate(self) -> list[Problem]:
        """The weight's range."""
        if 0 <= self.hard_pod_affinity_weight <= _MAX_WEIGHT:
            return []
        return [("hardPodAffinityWeight", str(self.hard_pod_affinity_weight), f"0 to {_MAX_WEIGHT}")]
