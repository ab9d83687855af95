"""`spec.fairness` of a SchedulingProfile: whose turn it is among the tenants of one profile.

A tenant is a namespace, or the value of a label of the pods. `queue.fairheap` takes the turns, `scheduler.policy` names a pod's
tenant and computes its charge, and docs/policy.md describes both for users.
"""

from __future__ import annotations

from typing import Annotated, Final

from placewright.api.fieldmeanings import means
from placewright.api.objects import KubeObject
from placewright.api.profilelimits import MAX_LABEL_KEY_LENGTH, MAX_TENANT_WEIGHT, MAX_TENANT_WEIGHTS

#: Values of `by`.
NONE: Final = "None"
NAMESPACE: Final = "Namespace"
LABEL: Final = "Label"
TENANTS_BY: Final = (NONE, NAMESPACE, LABEL)
#: Values of `share`.
RESOURCES: Final = "Resources"
PODS: Final = "Pods"
SHARES: Final = (RESOURCES, PODS)

#: A label's key as Kubernetes allows it: a name, with a domain and a slash before it or not.
LABEL_KEY: Final = r"^(([a-z0-9][-a-z0-9.]{0,251})?[a-z0-9]/)?([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]$"


class Fairness(KubeObject, frozen=True):
    """The tenants of a profile. They take turns among pods of one priority, in proportion to their weights."""

    by: Annotated[
        str,
        means(
            "The tenants that take turns among pods of one priority. None: no turns, the order is the QueueSort plugin's alone. Namespace: "
            "each namespace is a tenant. Label: each value of the label is one, and the pods without it are one more.",
            enum=list(TENANTS_BY),
        ),
    ] = NONE
    label: Annotated[
        str | None,
        means("With by: Label, the key of the pods' label.", maxLength=MAX_LABEL_KEY_LENGTH, pattern=LABEL_KEY),
    ] = None
    share: Annotated[
        str,
        means(
            "The charge for a pod that is tried. Resources: the largest of its requests as a share of what all nodes can allocate, at "
            "least its one place among the pods that they can hold. Pods: each pod costs the same.",
            enum=list(SHARES),
        ),
    ] = RESOURCES
    weights: Annotated[
        dict[str, int] | None,
        means(
            "The weight of a tenant: a tenant of weight 2 gets twice as much as one of weight 1. Absent: 1. The empty name stands for the "
            "pods without the label.",
            maxProperties=MAX_TENANT_WEIGHTS,
            additionalProperties={"type": "integer", "format": "int32", "minimum": 1, "maximum": MAX_TENANT_WEIGHT},
        ),
    ] = None

    @property
    def takes_turns(self) -> bool:
        """Whether there are tenants that take turns."""
        return self.by != NONE
