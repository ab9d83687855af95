"""kube-scheduler as a child process beside the API server, for comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from placewright_lab.controlplane.flags import client_flags
from placewright_lab.controlplane.server import Child, free_ports

NOTHING: Final[Mapping[str, Any]] = {}
#: Requests a second that it may make, so many that its own limit does not affect a measurement.
QPS: Final = 5000
#: The first minor version without the port for plain HTTP.
_NO_PLAIN_HTTP: Final = 23
#: First minor version whose configuration has no port for plain HTTP. Before, no flag turned that port off.
_NO_PLAIN_HTTP_IN_CONFIG: Final = 22
#: The oldest minor version that reads each version of the configuration, newest first.
_CONFIG_VERSIONS: Final = ((25, "v1"), (23, "v1beta3"), (22, "v1beta2"), (0, "v1beta1"))


class KubeScheduler(Child):
    """A running kube-scheduler, with its default plugins or another profile."""

    def __init__(
        self,
        program: Path,
        minor: int,
        kubeconfig: Path,
        folder: Path,
        *,
        profile: Mapping[str, Any] = NOTHING,
        settings: Mapping[str, Any] = NOTHING,
        flags: Sequence[str] = (),
    ) -> None:
        """Take the `folder` for configuration, keys and log, the `minor` version, and more `flags`.

        `profile` and `settings` go into its configuration, as its only profile and beside it, in the version that it reads. By default it
        is `default-scheduler`, and looks only at a share of a large cluster (`percentageOfNodesToScore`).
        """
        config = folder / "kube-scheduler.yaml"
        config.write_text(yaml.safe_dump({**configuration(minor, kubeconfig, profile), **settings}))
        served = client_flags(folder / "kube-scheduler", free_ports().api_server, plain_http=minor < _NO_PLAIN_HTTP)
        super().__init__(program, [f"--config={config}", *served, *flags], folder)


def configuration(minor: int, kubeconfig: Path, profile: Mapping[str, Any] = NOTHING) -> dict[str, Any]:
    """Return the configuration of a kube-scheduler with this profile alone, in the version that it reads.

    Args:
        minor: its minor version.
        kubeconfig: the file that it reads.
        profile: fields of the profile.
    """
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
