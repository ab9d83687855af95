"""kube-scheduler as a child process beside the API server, for comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Self

import yaml

from placewright_lab.controlplane.flags import gates_flag
from placewright_lab.controlplane.server import Background, Child, free_ports

NOTHING: Final[Mapping[str, Any]] = {}
#: Requests a second that it may make, so many that its own limit does not affect a measurement.
QPS: Final = 5000
#: The first minor version without the port for plain HTTP.
_NO_PLAIN_HTTP: Final = 23
#: First minor version whose configuration has no port for plain HTTP. Before, no flag turned that port off.
_NO_PLAIN_HTTP_IN_CONFIG: Final = 22
#: The oldest minor version that reads each version of the configuration, newest first.
_CONFIG_VERSIONS: Final = ((25, "v1"), (23, "v1beta3"), (22, "v1beta2"), (0, "v1beta1"))


class KubeScheduler(Background):
    """A kube-scheduler that runs with its context, with its default plugins or another profile.

    Attributes:
        log: file with its output.
        gates: feature gates in the form of its flag, set before the start.
    """

    def __init__(
        self,
        program: Path,
        minor: int,
        kubeconfig: Path,
        folder: Path,
        *,
        verbosity: int = 0,
        profile: Mapping[str, Any] = NOTHING,
        settings: Mapping[str, Any] = NOTHING,
    ) -> None:
        """Take the `folder` for configuration, keys and log, the `minor` version, and klog's `verbosity`.

        `profile` and `settings` go into its configuration, as its only profile and beside it, in the version that it reads. By default it
        is `default-scheduler`, and looks only at a share of a large cluster (`percentageOfNodesToScore`).
        """
        self._program = program
        self._minor = minor
        self._folder = folder
        self._verbosity = verbosity
        self._config = folder / "kube-scheduler.yaml"
        self._config.write_text(yaml.safe_dump({**_configuration(minor, kubeconfig, profile), **settings}))
        self.log = folder / "kube-scheduler.log"
        self.gates = ""

    def __enter__(self) -> Self:
        flags = [
            f"--config={self._config}",
            "--bind-address=127.0.0.1",
            f"--secure-port={free_ports().api_server}",
            f"--cert-dir={self._folder / 'kube-scheduler'}",
            "--authentication-skip-lookup",
            f"--v={self._verbosity}",
            *gates_flag(self.gates),
        ]
        if self._minor < _NO_PLAIN_HTTP:
            flags.append("--port=0")
        self._child = Child(self._program, flags, self._folder)
        return self


def _configuration(minor: int, kubeconfig: Path, profile: Mapping[str, Any]) -> dict[str, Any]:
    version = next(version for oldest, version in _CONFIG_VERSIONS if minor >= oldest)
    # A free loopback port instead of 10251 on all addresses, so that two can run at once.
    plain_http = f"127.0.0.1:{free_ports().api_server}"
    listening = {"healthzBindAddress": plain_http, "metricsBindAddress": plain_http}
    return {
        **(listening if minor < _NO_PLAIN_HTTP_IN_CONFIG else {}),
        "apiVersion": f"kubescheduler.config.k8s.io/{version}",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": QPS, "burst": QPS},
        "leaderElection": {"leaderElect": False},
        "profiles": [{"schedulerName": "default-scheduler", **profile}],
    }
