"""kube-scheduler as a child process beside the API server: to be compared with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import yaml

from placewright_lab.controlplane.children import Child, free_ports
from placewright_lab.controlplane.flags import gates_flag

NOTHING: Final[Mapping[str, Any]] = {}
#: Requests a second that it may make: so many that its own limit does not affect a measurement.
QPS: Final = 5000
#: The first minor version without the port for plain HTTP.
_NO_PLAIN_HTTP: Final = 23
#: First minor version whose configuration has no port for plain HTTP. Before, no flag turned that port off.
_NO_PLAIN_HTTP_IN_CONFIG: Final = 22
#: The oldest minor version that reads each version of the configuration, newest first.
_CONFIG_VERSIONS: Final = ((25, "v1"), (23, "v1beta3"), (22, "v1beta2"), (0, "v1beta1"))


class KubeScheduler:
    """Runs while its context is open, with its default plugins or another profile.

    Attributes:
        log: where its output goes.
        gates: feature gates, as its flag takes them; set before it starts, where it is to have other than its version's.
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
        """`folder` gets its configuration, keys and log; `minor` is its version, `verbosity` klog's.

        `profile` and `settings`: what its configuration says of its only profile and beside it, in the version that it reads. Of itself it
        is `default-scheduler`, and looks at a share of a large cluster only (`percentageOfNodesToScore`).
        """
        self._program = program
        self._minor = minor
        self._folder = folder
        self._verbosity = verbosity
        self._config = folder / "kube-scheduler.yaml"
        self._config.write_text(yaml.safe_dump({**_configuration(minor, kubeconfig, profile), **settings}))
        self._child: Child | None = None
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

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._child is not None:
            self._child.end()

    @property
    def pid(self) -> int:
        """Process id; 0 before the start."""
        return self._child.pid if self._child else 0

    @property
    def ended(self) -> bool:
        """Whether it has ended by itself."""
        return self._child is not None and self._child.ended

    def last_words(self) -> str:
        """Return the end of its log, in one line."""
        return self._child.last_words() if self._child else "it was not started"


def _configuration(minor: int, kubeconfig: Path, profile: Mapping[str, Any]) -> dict[str, Any]:
    version = next(version for oldest, version in _CONFIG_VERSIONS if minor >= oldest)
    # On a free loopback port instead of all addresses' 10251, so that two can run at once.
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
