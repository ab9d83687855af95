"""kube-controller-manager as a child process beside the API server. It makes the pods of ReplicaSets, and ends deleted objects."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from placewright_lab.controlplane.flags import client_flags, gates_flag
from placewright_lab.controlplane.server import Child, ControlPlane, free_ports

#: Requests a second that it may make, so many that its own limit delays nothing.
QPS: Final = 1000
#: The first minor version without the port for plain HTTP.
_NO_PLAIN_HTTP: Final = 24


class ControllerManager(Child):
    """A running kube-controller-manager, with the controllers that its version has by default.

    The API server needs `Features(controllers=True)`, so that service accounts take part in admission.
    """

    def __init__(self, program: Path, running: ControlPlane, gates: str = "") -> None:
        folder, plain_http = running.folder / "kube-controller-manager", running.assets.minor < _NO_PLAIN_HTTP
        flags = [
            f"--kubeconfig={running.kubeconfig}",
            f"--service-account-private-key-file={running.keys.service_accounts}",
            f"--root-ca-file={running.keys.authority}",
            "--leader-elect=false",
            f"--kube-api-qps={QPS}",
            f"--kube-api-burst={QPS}",
            *client_flags(folder, free_ports().api_server, plain_http=plain_http),
            *gates_flag(gates),
        ]
        super().__init__(program, flags, running.folder)
