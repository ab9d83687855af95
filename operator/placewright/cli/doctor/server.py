"""Checks the API server: whether it answers, its version, its clock, whether kubectl can check manifests with it, and its definitions.

The custom resource definitions are to be present, in effect, and those of this placewright.
"""

from __future__ import annotations

from datetime import UTC, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final

from placewright.cli.definitions import shipped_definitions
from placewright.cli.doctor.patient import CheckResult, Object, Patient, fail, ok, warn
from placewright.cli.profiles.namedprofiles import condition
from placewright.kube.errors import ApiError
from placewright.kube.serverversion import server_version

#: Oldest supported minor version of Kubernetes 1; older ones lack APIs that the operator reads.
_OLDEST: Final = 20
#: Error of the comparison: the header Date has whole seconds, and the request takes time.
_UNCERTAIN: Final = timedelta(seconds=2)
#: Lifetime of a record of the peering, which earlier builds judge by their clocks.
_LIFETIME: Final = timedelta(seconds=15)
#: Minor version of Kubernetes 1 from which on /openapi/v3 is served by default.
_SINCE_V3: Final = 24


async def api_server(patient: Patient) -> list[CheckResult]:
    """Check that the server answers. Without it no other check runs.

    Args:
        patient: the cluster; its `minor` is set.
    """
    version = await server_version(patient.client)
    where = patient.client.access.server
    if version is None:
        return [ok("api-server", f"{where} answers without its version")]
    patient.minor = version.minor
    if version.minor < _OLDEST:
        return [fail("api-server", f"{version} at {where}", f"upgrade Kubernetes: 1.{_OLDEST} and newer are meant to work")]
    return [ok("api-server", f"{version} at {where}")]


async def clock(patient: Patient) -> list[CheckResult]:
    """Compare this machine's clock with the API server's.

    Args:
        patient: the cluster; its `ahead` is set.
    """
    before = patient.now()
    try:
        # The header has whole seconds; the middle of the second is the best estimate.
        told = parsedate_to_datetime(await patient.client.date()).astimezone(UTC) + timedelta(seconds=0.5)
    except ValueError:
        return [ok("clock", "the API server does not tell the time")]
    # Halfway: the server wrote its time between our request and its answer.
    here = before + (patient.now() - before) / 2
    patient.ahead = here - told if abs(here - told) > _UNCERTAIN else timedelta()
    if not patient.ahead:
        return [ok("clock", "this machine's clock is that of the API server, to 2 seconds")]
    seconds = patient.ahead.total_seconds()
    said = f"this machine's clock is {abs(seconds):.0f} s {'ahead of' if seconds > 0 else 'behind'} the API server's"
    why = "synchronise clocks (NTP): kopf freeze and replicas of older builds compare them"
    return [(fail if abs(patient.ahead) >= _LIFETIME else warn)("clock", said, why)]


async def openapi(patient: Patient) -> list[CheckResult]:
    """Check for the OpenAPI documents with which kubectl checks manifests and explains fields."""
    problems = []
    for path in ("/openapi/v2", "/openapi/v3"):
        try:
            if await patient.read(path) is None:
                problems.append(f"{path} is not served" if path != "/openapi/v3" or (patient.minor or 0) >= _SINCE_V3 else "")
        except ApiError as problem:
            problems.append(f"{path} answers {problem.status}")
    found = " and ".join(filter(None, problems))
    if found:
        do = "look at the API server; until then kubectl apply needs --validate=false, and kubectl explain shows nothing"
        return [warn("openapi", found, do)]
    return [ok("openapi", "served: kubectl can check manifests and explain fields")]


# --- custom resource definitions -------------------------------------------------------------------------------------------------

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
