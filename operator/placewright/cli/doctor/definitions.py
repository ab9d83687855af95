"""Checks the custom resource definitions: present, in effect, and those of this placewright."""

from __future__ import annotations

from typing import Any, Final

from placewright.cli.definitions import shipped_definitions
from placewright.cli.doctor.patient import CheckResult, Object, Patient, fail, ok, warn
from placewright.cli.profiles.namedprofiles import condition

_PATH: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_PROFILES: Final = "schedulingprofiles.placewright.dev"
_PEERINGS: Final = "clusterkopfpeerings.kopf.dev"
_APPLY: Final = "kubectl apply --server-side -k crds"
#: Rules across fields. Servers before this minor version of Kubernetes 1 drop them.
_RULES: Final = "x-kubernetes-validations"
_SINCE_RULES: Final = 23


async def definitions(patient: Patient) -> list[CheckResult]:
    """Check both definitions.

    Returns:
        A result for each problem.
    """
    found: list[CheckResult] = []
    for name in (_PROFILES, _PEERINGS):
        installed = await patient.read(f"{_PATH}/{name}")
        problem = _problem(patient, name, installed)
        if problem is not None:
            found.append(problem)
    return found or [ok("definitions", f"{_PROFILES} and {_PEERINGS} are in effect, as of placewright {patient.version}")]


def _problem(patient: Patient, name: str, installed: Object | None) -> CheckResult | None:
    if installed is None:
        return fail("definitions", f"{name} is not there", f"{_APPLY}, before the operator")
    if condition(installed, "Established").get("status") != "True":
        told = condition(installed, "NamesAccepted").get("message") or "the API server gives no reason"
        return fail("definitions", f"{name} is not established: {told}", f"kubectl wait --for condition=established crd/{name}")
    wanted = next(each for each in shipped_definitions() if each["metadata"]["name"] == name)
    stored = (installed.get("status") or {}).get("storedVersions") or []
    known = [each["name"] for each in wanted["spec"]["versions"]]
    if strange := sorted(set(stored) - set(known)):
        said = f"{name} stores versions that this placewright does not know: {', '.join(strange)}"
        return warn("definitions", said, "use the placewright whose definitions these are")
    if name != _PROFILES:
        return None  # Kopf's definition, which another operator may have installed
    old = patient.minor is not None and patient.minor < _SINCE_RULES
    if where := _difference(wanted["spec"]["versions"], installed["spec"]["versions"], "spec.versions", old=old):
        said = f"{name} is not that of placewright {patient.version}: {where}"
        return warn("definitions", said, f"{_APPLY}, of the version that the operator is; use the same version here")
    return None


def _difference(wanted: Any, found: Any, path: str, *, old: bool) -> str:
    """Find the first difference of the installed definition. Fields that an API server adds do not count, except new properties."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        names = [name for name in wanted if not (old and name == _RULES)]
        if path.endswith(".properties") and (more := sorted(set(found) - set(wanted))):
            return f"{path}.{more[0]} is new"
        for name in names:
            if name not in found:
                return f"{path}.{name} is missing"
            if where := _difference(wanted[name], found[name], f"{path}.{name}", old=old):
                return where
        return ""
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        pairs = enumerate(zip(wanted, found, strict=True))
        return next(filter(None, (_difference(one, other, f"{path}[{number}]", old=old) for number, (one, other) in pairs)), "")
    return "" if wanted == found else f"{path} differs"
