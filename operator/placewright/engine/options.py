"""The options of the operator, as `placewright run` and tests pass them to the engine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from placewright.api.profile import SchedulingProfile


@dataclass(frozen=True, slots=True)
class AdmissionOptions:
    """The options of the validating webhook.

    Attributes:
        address, port: address and port of the webhook.
        certificates: folder with `tls.crt`, `tls.key` and perhaps `ca.crt`, as a mounted Secret has them; read again when they change.
            None: the webhook makes its own. That works for one replica at a time, as the configuration names one authority.
        service: (namespace, name, port) of the Service in front of the webhook; None: the API server calls the address itself.
        configuration: name of the ValidatingWebhookConfiguration to write; empty: write none, because the user manages it.
        failure_policy: `Ignore` stores profiles unchecked while the webhook does not answer, `Fail` refuses them.
    """

    address: str = "0.0.0.0"  # noqa: S104 - the API server connects from another machine
    port: int = 9443
    certificates: Path | None = None
    service: tuple[str, str, int] | None = None
    configuration: str = "placewright"
    failure_policy: str = "Ignore"


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """The options of the engine.

    Attributes:
        seed: seed of the random choice among nodes of equal score; None for another one at each start.
        reconcile_seconds: seconds between two comparisons of cache and queue with the API server.
        peering_lifetime: seconds for which a replica that vanished keeps the lead.
        leader_elect: False: this is the only replica, and there is neither peering nor a Lease.
        profiles: profiles from a file; SchedulingProfile objects are then not watched. None: they are.
        qps: requests a second to the API server, without watches and Kopf's requests; 0: no limit.
        burst: requests that may go at once beyond `qps`.
        admission: options of the validating webhook; None: there is none.
        check_plugins: check after each call of an out-of-tree plugin whether it wrote into objects, which is slow.
    """

    seed: int | None = None
    reconcile_seconds: float = 300.0
    peering_lifetime: int = 15
    leader_elect: bool = True
    profiles: tuple[SchedulingProfile, ...] | None = None
    qps: float = 0.0
    burst: int = 1
    admission: AdmissionOptions | None = None
    check_plugins: bool = False
