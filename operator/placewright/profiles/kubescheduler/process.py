"""Settings of the process in a configuration: which ones `placewright run --config` uses, and which have no counterpart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from placewright.profiles.config import ClientConnection, KubeSchedulerConfiguration, LeaderElection
from placewright.profiles.kubescheduler.findings import ConversionFindings


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    """Settings of the process; None if the file sets none.

    Attributes:
        leader_elect: whether replicas elect an active one.
        kubeconfig: path of a kubeconfig.
        qps: requests a second to the API server; 0 or less: no limit.
        burst: requests that may be sent at once.
    """

    leader_elect: bool | None = None
    kubeconfig: str | None = None
    qps: float | None = None
    burst: int | None = None

    def flags(self) -> Iterator[tuple[str, str]]:
        """List the settings as flags. `leaderElect: true` is left out, because it is the default.

        Yields:
            (field of the file, flag of `placewright run`).
        """
        if self.leader_elect is False:
            yield "leaderElection.leaderElect", "--leader-elect=false"
        if self.kubeconfig:
            yield "clientConnection.kubeconfig", f"--kubeconfig {self.kubeconfig}"
        if self.qps:
            yield "clientConnection.qps", f"--kube-api-qps {self.qps:g}"
        if self.burst:
            yield "clientConnection.burst", f"--kube-api-burst {self.burst}"

    def document(self) -> dict[str, Any]:
        """Write the settings as parts of a KubeSchedulerConfiguration.

        Returns:
            `leaderElection` and `clientConnection`, with the fields that are set.
        """
        client = {"kubeconfig": self.kubeconfig, "qps": self.qps, "burst": self.burst}
        parts: dict[str, dict[str, Any]] = {"leaderElection": {"leaderElect": self.leader_elect}, "clientConnection": client}
        stated = {part: {name: value for name, value in fields.items() if value is not None} for part, fields in parts.items()}
        return {part: fields for part, fields in stated.items() if fields}


class OlderConfiguration(KubeSchedulerConfiguration, frozen=True):
    """A configuration of v1beta1 to v1beta3, which has two more fields."""

    healthz_bind_address: str | None = None
    metrics_bind_address: str | None = None


def process_settings(config: KubeSchedulerConfiguration, findings: ConversionFindings) -> ProcessSettings:
    """Select the settings that `placewright run --config` uses. All others that are set become findings."""
    if config.parallelism is not None:
        findings.setting("parallelism", "all nodes are evaluated at once, on columns")
    for name, value in (
        ("delayCacheUntilActive", config.delay_cache_until_active),
        ("enableProfiling", config.enable_profiling),
        ("enableContentionProfiling", config.enable_contention_profiling),
    ):
        if value is not None:
            findings.setting(name, "there is nothing to switch")
    if isinstance(config, OlderConfiguration):
        _addresses(config, findings)
    leader, client = config.leader_election or LeaderElection(), config.client_connection or ClientConnection()
    _unused(leader, {"leaderElect"}, "leaderElection", "replicas elect one by Kopf's peering, which has its own settings", findings)
    _unused(client, {"kubeconfig", "qps", "burst"}, "clientConnection", "JSON is what is spoken", findings)
    return ProcessSettings(leader.leader_elect, client.kubeconfig or None, client.qps, client.burst)


def _addresses(config: OlderConfiguration, findings: ConversionFindings) -> None:
    instead = "served over HTTPS at --secure-port"
    for name, value, text in (
        ("healthzBindAddress", config.healthz_bind_address, f"health is {instead}, and without TLS on loopback at --health-port"),
        ("metricsBindAddress", config.metrics_bind_address, f"metrics are {instead} alone"),
    ):
        if value and not value.endswith(":0"):
            findings.setting(name, text)


def _unused(part: LeaderElection | ClientConnection, used: set[str], path: str, text: str, findings: ConversionFindings) -> None:
    for name, value in zip(part.__struct_encode_fields__, msgspec.structs.astuple(part), strict=True):
        if value not in (None, "") and name not in used:
            findings.setting(f"{path}.{name}", text)
