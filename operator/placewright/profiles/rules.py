"""Rules across the fields of a profile that the API server itself can hold, in CEL: what the CRD carries as `x-kubernetes-validations`.

API servers before 1.25 pass over them, so each has its counterpart in `check`; tests/profiles/test_rules.py holds the two
together. A rule may count on types and on the bounds in annotations (`api.profile`), but not on a field being there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from placewright.api.profilelimits import MAX_WEIGHT


class ValidationRule(NamedTuple):
    """One rule, and the message when it does not hold."""

    rule: str
    message: str


def _given(*fields: str) -> str:
    """Write that at least one of these text fields is not empty, in CEL."""
    return " || ".join(f"(has(self.{field}) && size(self.{field}) > 0)" for field in fields)


_CERTIFICATE: Final = _given("certFile", "certData")
_KEY: Final = _given("keyFile", "keyData")
_VERBS: Final = ("filterVerb", "preemptVerb", "prioritizeVerb", "bindVerb")
_COUNTS: Final = "has(self.managedResources) && self.managedResources.exists(r, has(r.ignoredByScheduler) && r.ignoredByScheduler)"
_SHADOW: Final = "has(self.mode) && self.mode == 'Shadow'"

#: Rules by struct and field; an empty field stands for the struct itself.
RULES: Final[Mapping[tuple[str, str], tuple[ValidationRule, ...]]] = {
    ("ProfileSpec", ""): (
        ValidationRule(
            f"({_SHADOW}) == (has(self.shadows) && size(self.shadows) > 0)",
            "mode Shadow and shadows, the name of a live profile, go together",
        ),
        ValidationRule(
            f"({_SHADOW}) || (has(self.schedulerName) && size(self.schedulerName) > 0)",
            "schedulerName is required: the spec.schedulerName of the pods that the profile places",
        ),
        ValidationRule(f"!has(self.shadow) || ({_SHADOW})", "shadow is for mode Shadow alone"),
        ValidationRule(f"!has(self.pods) || !({_SHADOW})", "pods is for mode Live alone: a shadow is given to no pod"),
    ),
    ("ProfileSpec", "schedulerName"): (
        ValidationRule("self == oldSelf", "schedulerName is immutable: for another name, make another profile and delete this one"),
    ),
    ("ProfileSpec", "mode"): (ValidationRule("self == oldSelf", "mode is immutable: for the other mode, make another profile"),),
    ("ProfileSpec", "weights"): (
        ValidationRule(f"self.all(name, self[name] >= 0 && self[name] <= {MAX_WEIGHT})", f"a weight is 0 (off) to {MAX_WEIGHT}"),
    ),
    ("ProfileSpec", "extenders"): (
        ValidationRule("self.filter(e, has(e.bindVerb) && size(e.bindVerb) > 0).size() <= 1", "only one extender may have a bindVerb"),
    ),
    ("Backoff", ""): (
        ValidationRule(
            "!has(self.maxSeconds) || !has(self.initialSeconds) || self.maxSeconds == 0.0 || self.maxSeconds >= self.initialSeconds",
            "maxSeconds is at least initialSeconds, or 0 for no backoff",
        ),
    ),
    ("ProfilePods", ""): (
        ValidationRule(
            "!has(self.priority) || has(self.podSelector) || has(self.namespaceSelector)",
            "priority needs podSelector or namespaceSelector: it ranks the profiles that select a pod",
        ),
    ),
    ("LabelSelectorRequirement", ""): (
        ValidationRule(
            "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
            "In and NotIn need values, and Exists and DoesNotExist have none",
        ),
    ),
    ("PreemptionSpec", ""): (
        ValidationRule(
            "!has(self.maxVictims) || !has(self.maxEvictionsPerMinute) || self.maxVictims <= self.maxEvictionsPerMinute",
            "maxVictims is at most maxEvictionsPerMinute: no minute has room for more",
        ),
    ),
    ("Fairness", ""): (
        ValidationRule(
            "(has(self.by) && self.by == 'Label') == (has(self.label) && size(self.label) > 0)",
            "by: Label and label, the key of the pods' label, go together",
        ),
    ),
    ("ExtenderSpec", ""): (
        ValidationRule(
            f"{_given(*_VERBS)} || ({_COUNTS})",
            f"an extender needs something to do: at least one of {', '.join(_VERBS)}",
        ),
        ValidationRule(
            "!has(self.prioritizeVerb) || size(self.prioritizeVerb) == 0 || (has(self.weight) && self.weight >= 1)",
            "an extender with a prioritizeVerb needs a weight of 1 or more",
        ),
    ),
    ("ExtenderTLS", ""): (
        ValidationRule(
            f"({_CERTIFICATE}) == ({_KEY})", "a certificate and its key go together: certFile or certData with keyFile or keyData"
        ),
        ValidationRule(
            f"!has(self.insecure) || !self.insecure || !({_given('caFile', 'caData')})",
            "insecure beside a CA: nothing would be verified with it",
        ),
    ),
}


def rules_of(struct: str, field: str = "") -> dict[str, Any]:
    """Build the schema's keyword for the rules of a struct, or of one of its fields.

    Args:
        struct: name of the struct.
        field: name of the field; empty for the struct itself.

    Returns:
        `x-kubernetes-validations`; empty if there are no rules.
    """
    found = RULES.get((struct, field), ())
    return {"x-kubernetes-validations": [rule._asdict() for rule in found]} if found else {}
