"""What a person may choose about the operator, as `placewright run` and tests hand it to the engine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from placewright.api.profile import SchedulingProfile


@dataclass(frozen=True, slots=True)
class AdmissionOptions:
    """How the API server reaches us, and what it does when it cannot.

    Attributes:
        address, port: where to listen.
        certificates: folder with `tls.crt`, `tls.key` and perhaps `ca.crt`, as a mounted Secret has them; read again when they change.
            None: we make our own, which only one replica at a time can do.
        service: (namespace, name, port) of the Service in front of us; None: the API server calls the address itself.
        configuration: name of the ValidatingWebhookConfiguration that we keep; empty: somebody else does.
        failure_policy: `Ignore` or `Fail`: whether profiles are taken unseen while nobody answers.
    """

    address: str = "0.0.0.0"  # noqa: S104 - the API server comes from elsewhere
    port: int = 9443
    certificates: Path | None = None
    service: tuple[str, str, int] | None = None
    configuration: str = "placewright"
    failure_policy: str = "Ignore"


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """What a person may choose.

    Attributes:
        seed: of the choice among equally good nodes; None for a different one every start.
        reconcile_seconds: the slow beat of the reconciler.
        peering_lifetime: how long a replica that vanished keeps its lead, in seconds.
        leader_elect: False: there is no other replica, no peering and no Lease.
        profiles: from a file; custom resources are not looked at then.
        qps: requests a second to the API server, watches and Kopf's not counted; 0: no limit.
        burst: how many of them may go at once.
        admission: answer the API server's questions about profiles; None: no.
        check_plugins: look at every call of a plugin that is not ours whether it wrote into objects; slow.
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
