"""Rules for scheduling.k8s.io PodGroups. Source: the API types of v1alpha2 and their declared validation."""

from __future__ import annotations

from kubesandbox.devices.fields import Faults, invalid, label_key, required, too_many
from kubesandbox.status import Object

MAX_TOPOLOGIES = 1


def check_group(spec: Object, old: Object | None) -> Faults:
    """What is wrong with `spec` of a group; nothing of it may change."""
    if old is not None:
        for field in ("podGroupTemplateRef", "schedulingPolicy", "schedulingConstraints"):
            if old.get(field) != spec.get(field):
                yield invalid(f"spec.{field}", spec.get(field), "field is immutable")
        return
    yield from _check_policy("spec.schedulingPolicy", spec.get("schedulingPolicy") or {})
    if spec.get("schedulingConstraints") is not None:
        topologies = spec["schedulingConstraints"].get("topologyConstraints") or []
        path = "spec.schedulingConstraints.topologyConstraints"
        if not topologies:
            yield required(path)
        elif len(topologies) > MAX_TOPOLOGIES:
            yield too_many(path, len(topologies), MAX_TOPOLOGIES)
        for at, each in enumerate(topologies):
            key = each.get("topologyKey")
            yield from label_key(f"{path}[{at}].topologyKey", key) if key else [required(f"{path}[{at}].topologyKey")]


def _check_policy(path: str, policy: Object) -> Faults:
    fields = [field for field in ("basic", "gang") if policy.get(field) is not None]
    if not fields:
        yield invalid(path, "", "must specify one of: `basic`, `gang`")
    elif len(fields) > 1:
        yield invalid(path, "{`basic`, `gang`}", "exactly one of `basic`, `gang` is required, but multiple fields are set")
    elif fields == ["gang"]:
        count = policy["gang"].get("minCount") or 0
        if not count:
            yield required(f"{path}.gang.minCount")
        elif count < 0:
            yield invalid(f"{path}.gang.minCount", count, "must be greater than or equal to 1")
