"""kube-controller-manager as a child process beside the API server. It makes the pods of ReplicaSets, and ends deleted objects."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Self

from placewright_lab.controlplane.flags import gates_flag
from placewright_lab.controlplane.server import Background, Child, ControlPlane, ControlPlaneFailed, free_ports

#: Requests a second that it may make, so many that its own limit delays nothing.
QPS: Final = 1000
#: The first minor version without the port for plain HTTP.
_NO_PLAIN_HTTP: Final = 24


class ControllerManager(Background):
    """A kube-controller-manager that runs with its context, with the controllers that its version has by default.

    The API server needs `Features(controllers=True)`, so that service accounts take part in admission.
    """

    def __init__(self, program: Path, running: ControlPlane, gates: str = "") -> None:
        self._program = program
        self._running = running
        self._gates = gates

    def __enter__(self) -> Self:
        keys = self._running.keys
        flags = [
            f"--kubeconfig={self._running.kubeconfig}",
            f"--service-account-private-key-file={keys.service_accounts}",
            f"--root-ca-file={keys.authority}",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            f"--secure-port={free_ports().api_server}",
            f"--cert-dir={self._running.folder / 'kube-controller-manager'}",
            "--authentication-skip-lookup",
            f"--kube-api-qps={QPS}",
            f"--kube-api-burst={QPS}",
            *gates_flag(self._gates),
        ]
        if self._running.assets.minor < _NO_PLAIN_HTTP:
            flags.append("--port=0")
        self._child = Child(self._program, flags, self._running.folder)
        return self

    def check(self) -> None:
        """Raise `ControlPlaneFailed`, with its last words, if it has ended by itself."""
        if self._child is not None and self._child.ended:
            raise ControlPlaneFailed(f"{self._child.name} ended: {self._child.last_words()}")
