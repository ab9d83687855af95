"""`spec.pods` of a SchedulingProfile: which pods get the profile, and which namespaces may use it, as people write it.

`profiles/check.py` refuses what cannot be. `framework/runtime/profileruntime.py` keeps out pods whose namespace may not use the
profile.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from placewright.api.fieldmeanings import ATOMIC, between, means
from placewright.api.objects import KubeObject, LabelSelector
from placewright.api.profilelimits import MAX_ITEMS
from placewright.api.selectors import CompiledRequirement

#: The label of a pod that is left to the scheduler that it names; its only value is `OPTED_OUT`.
ASSIGN_LABEL: Final = "placewright.dev/assign-profile"
OPTED_OUT: Final = "false"
#: The annotation of a pod that was given a profile: priority, creationTimestamp, name and schedulerName of the profile, with single blanks.
#: A profile of a higher priority that is evaluated later reads it.
ASSIGNED: Final = "placewright.dev/assigned-profile"

#: Lengths of a label's key (a DNS subdomain, a slash, a name), of its value, and of a namespace's name.
_LONGEST_KEY: Final = 317
_LONGEST_VALUE: Final = 63
_LABEL_VALUE: Final[dict[str, Any]] = {"type": "string", "maxLength": _LONGEST_VALUE}
#: Namespaces that one profile may name.
MAX_NAMESPACES: Final = 1000
NAMESPACE_PATTERN: Final = "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"
_INT32: Final = 2**31


class LabelSelectorRequirement(KubeObject, frozen=True):
    """One expression of a label selector in a profile."""

    key: Annotated[str, means("The label's key.", required=True, minLength=1, maxLength=_LONGEST_KEY)] = ""
    operator: Annotated[
        str, means("How the label's value compares with values.", required=True, enum=["In", "NotIn", "Exists", "DoesNotExist"])
    ] = ""
    values: Annotated[
        list[str] | None, means("Values of the label; for In and NotIn alone.", maxItems=MAX_ITEMS, items=_LABEL_VALUE, **ATOMIC)
    ] = None

    @property
    def compiled(self) -> CompiledRequirement:
        """The expression without checks. An operator that no API server stores matches no label."""
        return CompiledRequirement(self.key, self.operator, frozenset(self.values or ()))


class ProfileLabelSelector(KubeObject, frozen=True):
    """A label selector in a profile: all of it must hold; an empty one selects everything."""

    match_labels: Annotated[
        dict[str, str] | None,
        means("Labels that an object must have.", maxProperties=MAX_ITEMS, additionalProperties=_LABEL_VALUE),
    ] = None
    match_expressions: Annotated[
        list[LabelSelectorRequirement] | None,
        means("Expressions that an object's labels must satisfy.", maxItems=MAX_ITEMS, **ATOMIC),
    ] = None

    @property
    def expressions(self) -> tuple[CompiledRequirement, ...]:
        """The selector's requirements, without checks."""
        pairs = [CompiledRequirement(key, "In", frozenset((value,))) for key, value in (self.match_labels or {}).items()]
        return (*pairs, *[each.compiled for each in self.match_expressions or ()])

    def as_label_selector(self) -> LabelSelector:
        """Convert to the selector that `api.selectors` compiles."""
        return msgspec.convert(msgspec.to_builtins(self), LabelSelector)


class ProfilePods(KubeObject, frozen=True):
    """Which pods get the profile. A profile with neither selector is given to no pod; pods that name its schedulerName still use it."""

    namespace_selector: Annotated[
        ProfileLabelSelector | None,
        means("Labels of the namespaces whose pods are given the profile at their creation. Absent: any, where podSelector is there."),
    ] = None
    pod_selector: Annotated[
        ProfileLabelSelector | None,
        means(
            "Labels of the pods that are given the profile at their creation, if their schedulerName is default-scheduler and their label "
            f"{ASSIGN_LABEL} is not {OPTED_OUT!r}. Absent: any, where namespaceSelector is there."
        ),
    ] = None
    allowed_namespaces: Annotated[
        list[str] | None,
        means(
            "Names of the namespaces whose pods may use the profile; pods of other namespaces wait. Absent: all, or the ones that "
            "allowedNamespaceSelector selects.",
            minItems=1,
            maxItems=MAX_NAMESPACES,
            items={"type": "string", "maxLength": _LONGEST_VALUE, "pattern": NAMESPACE_PATTERN},
            **{"x-kubernetes-list-type": "set"},
        ),
    ] = None
    allowed_namespace_selector: Annotated[
        ProfileLabelSelector | None,
        means("Labels of the namespaces whose pods may use the profile, beside the ones that allowedNamespaces names."),
    ] = None
    priority: Annotated[
        int | None,
        between(-_INT32, _INT32 - 1),
        means("Of two profiles that select a pod, the one with the higher priority is given to it. Absent: 0.", format="int32"),
    ] = None

    @property
    def assigns(self) -> bool:
        """Whether pods are given the profile at their creation."""
        return self.namespace_selector is not None or self.pod_selector is not None
