"""Rules for the claims that a pod names, and that its containers name in turn."""

from __future__ import annotations

from collections.abc import Collection

from kubesandbox.devices.fields import Faults, distinct, duplicate, invalid, label_name, required, subdomain
from kubesandbox.status import Object

_SOURCES = ("resourceClaimName", "resourceClaimTemplateName")


def check_pod_claims(spec: Object) -> Faults:
    """What is wrong with `spec.resourceClaims` of a pod and with what refers to it."""
    claims = spec.get("resourceClaims") or ()
    for at, claim in enumerate(claims):
        yield from _check_claim(f"spec.resourceClaims[{at}]", claim)
    yield from distinct("spec.resourceClaims", claims, lambda each: str(each.get("name", "")))
    names = {str(each["name"]) for each in claims if each.get("name")}
    for kind in ("initContainers", "containers"):
        for at, container in enumerate(spec.get(kind) or ()):
            uses = ((container or {}).get("resources") or {}).get("claims") or ()
            yield from _check_uses(f"spec.{kind}[{at}].resources.claims", uses, names)


def _check_claim(path: str, claim: Object) -> Faults:
    yield from label_name(f"{path}.name", claim.get("name"))
    given = [field for field in _SOURCES if claim.get(field) is not None]
    listed = ", ".join(f"`{field}`" for field in _SOURCES)
    if not given:
        yield invalid(path, claim, f"must specify one of: {listed}")
    elif len(given) > 1:
        yield invalid(path, claim, f"at most one of {listed.replace(',', ' or', 1)} may be specified")
    for field in given:
        yield from subdomain(f"{path}.{field}", claim[field])


def _check_uses(path: str, uses: Collection[Object], names: Collection[str]) -> Faults:
    seen: set[tuple[str, str]] = set()
    known = f": {', '.join(sorted(names))}" if names else " which is empty"
    for at, use in enumerate(uses):
        name, request = str(use.get("name") or ""), str(use.get("request") or "")
        if not name:
            yield required(f"{path}[{at}]")
            continue
        if request:
            yield from label_name(f"{path}[{at}].request", request)
        if (name, "") in seen or (not request and any(other == name for other, _ in seen)):
            yield duplicate(f"{path}[{at}]", name)
        elif (name, request) in seen:
            yield duplicate(f"{path}[{at}]", f"{name}/{request}")
        if name not in names:
            yield f"{path}[{at}]", f'Not found: "{name}": must be one of the names in pod.spec.resourceClaims{known}'
        seen.add((name, request))
