"""The API server: whether it answers, how old it is, what its clock shows, and whether kubectl can check manifests with it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

from placewright.cli.doctor.patient import CheckResult, Patient, fail, ok, warn
from placewright.kube.errors import ApiError
from placewright.kube.serverversion import server_version

#: Older ones lack APIs that the operator reads.
_OLDEST: Final = 20
#: The Date of an answer has whole seconds; a difference that matters is larger than this.
_UNCERTAIN: Final = timedelta(seconds=2)
#: How long a record of the peering lives, which is compared with clocks.
_LIFETIME: Final = timedelta(seconds=15)


async def api_server(patient: Patient) -> list[CheckResult]:
    """Whether it is there; the one check without which there are no others."""
    version = await server_version(patient.client)
    where = patient.client.access.server
    if version is None:
        return [ok("api-server", f"{where} answers, and does not tell its version")]
    patient.minor = version.minor
    if version.minor < _OLDEST:
        return [fail("api-server", f"{version} at {where}", f"upgrade Kubernetes: 1.{_OLDEST} and newer are meant to work")]
    return [ok("api-server", f"{version} at {where}")]


async def clock(patient: Patient) -> list[CheckResult]:
    """This machine's clock beside the API server's."""
    before = patient.now()
    try:
        # Only the second is told; its middle is the best guess.
        told = parsedate_to_datetime(await patient.client.date()).astimezone(UTC) + timedelta(seconds=0.5)
    except ValueError:
        return [ok("clock", "the API server does not tell the time")]
    here = before + (patient.now() - before) / 2
    patient.ahead = here - told if abs(here - told) > _UNCERTAIN else timedelta()
    if not patient.ahead:
        return [ok("clock", "this machine's clock is that of the API server, to 2 seconds")]
    seconds = patient.ahead.total_seconds()
    said = f"this machine's clock is {abs(seconds):.0f} s {'ahead of' if seconds > 0 else 'behind'} the API server's"
    why = "synchronise clocks (NTP): replicas judge each other's records in the peering by their own"
    return [(fail if abs(patient.ahead) >= _LIFETIME else warn)("clock", said, why)]


async def openapi(patient: Patient) -> list[CheckResult]:
    """Whether kubectl finds what it checks manifests with, and what `kubectl explain` shows."""
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


#: Kubernetes 1 minor version from which /openapi/v3 is there without being asked for.
_SINCE_V3: Final = 24


def seconds_since(patient: Patient, then: datetime) -> float:
    """How long ago that was, by the API server's clock."""
    return max((patient.server_now - then).total_seconds(), 0.0)
