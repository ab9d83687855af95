"""Checks the API server: whether it answers, its version, its clock, and whether kubectl can check manifests with it."""

from __future__ import annotations

from datetime import UTC, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

from placewright.cli.doctor.patient import CheckResult, Patient, fail, ok, warn
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
