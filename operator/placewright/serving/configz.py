"""`/configz`: the settings this process runs with, in the words of a KubeSchedulerConfiguration, and every profile as it takes effect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from placewright import __version__
from placewright.engine.engine import Engine
from placewright.engine.options import EngineOptions
from placewright.engine.profilekeeper import ProfileKeeper
from placewright.http.routes import JSON, Answer, Endpoint, Question
from placewright.leadership.election import Alone, Election
from placewright.leadership.leaserule import Timing
from placewright.leadership.peering import PEERING_NAME
from placewright.profiles.effective import as_document

#: Makes the settings of the process that are not the engine's, such as its ports.
Besides = Callable[[], Mapping[str, Any]]
_NO_LIMIT: Final = -1.0


def configz_endpoint(engine: Engine, besides: Besides) -> Endpoint:
    """Make `/configz`.

    Args:
        engine: the engine with the settings.
        besides: the settings that are not the engine's.

    Returns:
        An endpoint for authorized users.
    """

    async def answer(_question: Question) -> Answer:
        document = {"componentconfig": {**component_config(engine), **besides()}, "profiles": profiles(engine.deciding.profiles)}
        return Answer(msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n", JSON)

    return Endpoint("/configz", answer)


def component_config(engine: Engine) -> dict[str, Any]:
    """Return the engine's settings in the words of a KubeSchedulerConfiguration. A rate below 0 means no limit, as in client-go."""
    options = engine.options
    admission = None if options.admission is None else {"address": options.admission.address, "port": options.admission.port}
    return {
        "leaderElection": _leader_election(engine.leading.leadership, engine.options),
        "clientConnection": {"qps": options.qps or _NO_LIMIT, "burst": options.burst},
        "profilesFrom": "custom resources" if options.profiles is None else "a file",
        "reconcileSeconds": options.reconcile_seconds,
        "seed": options.seed,
        "admission": admission,
        "identity": engine.leading.replica.identity,
        "version": __version__,
    }


def _leader_election(leadership: Election | Alone, options: EngineOptions) -> dict[str, Any]:
    if isinstance(leadership, Alone):
        return {"leaderElect": False}
    lease, timing = leadership.lease.store, Timing.of(options.peering_lifetime)
    return {
        "leaderElect": True,
        "leaseDuration": f"{timing.lease}s",
        "renewDeadline": f"{timing.renew:g}s",
        "retryPeriod": f"{timing.retry:g}s",
        "resourceLock": "leases",
        "resourceNamespace": lease.namespace,
        "resourceName": lease.name,
        "peering": PEERING_NAME,
    }


def profiles(keeper: ProfileKeeper) -> list[dict[str, Any]]:
    """Each profile with its newest generation, the one in effect, and its standing. `profiles.effective` hides secrets."""
    in_effect = keeper.in_effect()
    found = []
    for name, standing in sorted(keeper.standings().items()):
        active = in_effect.get(name)
        found.append(
            {
                "name": name,
                "schedulerName": standing.scheduler_name,
                "generation": standing.observed_generation,
                "activeGeneration": standing.active_generation,
                "reason": str(standing.reason),
                "message": standing.message,
                "advice": [] if active is None else [hint.message for hint in keeper.advice_on(active)],
                "effective": None if active is None else as_document(active.profile),
            }
        )
    return found
