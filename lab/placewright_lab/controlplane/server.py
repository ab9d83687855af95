"""etcd and kube-apiserver as child processes, on free loopback ports, with TLS, RBAC, service accounts and an audit log.

Like in envtest, there is no controller manager. So there are no default service accounts or tokens, and namespaces do not end. Nothing
collects garbage or counts budgets. A test that needs such work does it itself, or starts a controller manager (`controllermanager.py`).

Child processes that never outlive us, with their output in a file.
"""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from kubesandbox.auth.credentials import write_private
from placewright_lab.controlplane.assets import Assets
from placewright_lab.controlplane.flags import PLAIN, Features, Keys, Ports, api_server_flags, etcd_flags

_END_SECONDS: Final = 10.0
_LAST_LINES: Final = 4
_LAST_BYTES: Final = 4096


class ControlPlaneFailed(Exception):
    """A program of the control plane ended by itself, or was not ready in time."""


class Child:
    """One running program, which ends with its context. On Linux it dies with the thread that started it."""

    def __init__(self, program: Path, flags: Sequence[str], folder: Path, name: str = "") -> None:
        """Take the `folder` in which it works and has its log, and its `name`, by default the program's."""
        self.name = name or program.name
        self.log = folder / f"{self.name}.log"
        with self.log.open("ab") as output:
            # A session of its own leaves Ctrl-C on the terminal to us, so that everything ends in order.
            self._process = subprocess.Popen(  # noqa: S603 - a program of the user's own choice, no shell
                [*_dying_with_us(), program, *flags],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=folder,
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.end()

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """True once it has ended."""
        return self._process.poll() is not None

    @property
    def exit_code(self) -> int | None:
        """Exit code; None while it runs, and negative for the signal that ended it."""
        return self._process.poll()

    def end(self, seconds: float = _END_SECONDS) -> None:
        """Ask it to end, and kill it after a while."""
        self._process.terminate()
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Kill it."""
        self._process.kill()
        self._process.wait()

    def last_words(self) -> str:
        """Return the end of its log, in one line."""
        lines = self.log.read_bytes()[-_LAST_BYTES:].decode(errors="replace").strip().splitlines()
        return " | ".join(line.strip() for line in lines[-_LAST_LINES:]) or "it said nothing"


def check_running(*children: Child | None) -> None:
    """Raise `ControlPlaneFailed`, with a program's last words, if it has ended by itself."""
    for child in children:
        if child is not None and child.ended:
            raise ControlPlaneFailed(f"{child.name} ended: {child.last_words()}")


def free_ports(api_server: int = 0) -> Ports:
    """Return loopback ports that are free for now. `api_server` is the first of them unless it is 0."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
    numbers = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return Ports(api_server or numbers[0], numbers[1], numbers[2])


def _dying_with_us() -> list[str]:
    """Return words before a command so that the kernel ends it when we are killed. Without the program for that, there are none."""
    program = shutil.which("setpriv")
    return [program, "--pdeathsig", "KILL", "--"] if program else []


_READY_SECONDS: Final = 90.0
_LOOK_SECONDS: Final = 0.05
_ASK_SECONDS: Final = 10.0
_STARTS: Final = 3


@dataclass(frozen=True, slots=True)
class Options:
    """The differences of a control plane from the usual one.

    Attributes:
        audit: True to log every request for `ControlPlane.audit_log`; it costs time, so benchmarks do without.
        kubeconfig: path of the administrator's kubeconfig; None for a temporary file.
        port: port of the API server; 0 for a free one.
        features: features beyond its version's defaults.
    """

    audit: bool = True
    kubeconfig: Path | None = None
    port: int = 0
    features: Features = PLAIN


class ControlPlane:
    """A control plane that runs with its context, which waits at its beginning until the API server is ready.

    It belongs to no event loop.

    Attributes:
        assets: programs that run.
        folder: temporary folder for keys, data and logs, removed at the end.
        server: URL of the API server.
        kubeconfig: kubeconfig of a user in system:masters.
        audit_log: file with one line of JSON a request (`audit.py` reads it).
    """

    def __init__(self, assets: Assets, options: Options = Options()) -> None:
        self.assets = assets
        self._options = options
        self._etcd: Child | None = None
        self._api_server: Child | None = None
        self._closing = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as undo:
            undo.callback(self._end)
            self.folder = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="placewright-", ignore_cleanup_errors=True)))
            self._keys = Keys.make(self.folder)
            self.audit_log = self.folder / "audit.log"
            self._start()
            self.kubeconfig = self._options.kubeconfig or self.folder / "kubeconfig"
            write_private(self.kubeconfig, self._keys.credentials.kubeconfig(self.server))
            self._closing = undo.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        # The processes end first, because their last writes would make the removal of the folder fail.
        self._end()
        self._closing.close()

    @property
    def keys(self) -> Keys:
        """Its key files."""
        return self._keys

    @property
    def api_server_pid(self) -> int:
        """Process id; 0 while it is down."""
        return self._api_server.pid if self._api_server else 0

    @property
    def etcd_pid(self) -> int:
        """Process id; 0 while it is down."""
        return self._etcd.pid if self._etcd else 0

    def check(self) -> None:
        """Raise `ControlPlaneFailed`, with a program's last words, if it has ended by itself."""
        check_running(self._etcd, self._api_server)

    def kubeconfig_of(self, token: str, path: Path) -> Path:
        """Write the kubeconfig of the owner of this bearer token, and return its path."""
        write_private(path, self._keys.credentials.kubeconfig(self.server, token))
        return path

    def start_api_server(self) -> None:
        """Start the API server again on the same port, and wait until it is ready."""
        self.launch_api_server()
        self.wait_until_ready()

    def launch_api_server(self) -> None:
        """Start the API server again on the same port, without waiting."""
        audit_log = self.audit_log if self._options.audit else None
        flags = api_server_flags(self.assets.minor, self._ports, self._keys, audit_log, self._options.features)
        self._api_server = Child(self.assets.kube_apiserver, flags, self.folder)

    def wait_until_ready(self) -> None:
        """Return when the started API server is ready. Any thread may call this."""
        assert self._api_server is not None, "the API server was not started"
        self._wait(self._api_server, f"{self.server}/readyz", {"Authorization": f"Bearer {self._keys.credentials.token}"})

    def launch_etcd(self) -> None:
        """Start etcd again with its data, without waiting. The API server is ready (`wait_until_ready`) after it has found etcd."""
        self._etcd = Child(self.assets.etcd, etcd_flags(self.folder, self._ports, self._keys), self.folder)

    def _start(self) -> None:
        """Start etcd and the API server. If a free port is taken meanwhile, try other ports."""
        for attempt in range(_STARTS):
            self._ports = free_ports(self._options.port)
            self.server = f"https://127.0.0.1:{self._ports.api_server}"
            try:
                self.launch_etcd()
                assert self._etcd is not None
                self._wait(self._etcd, f"https://127.0.0.1:{self._ports.etcd}/health", {})
                self.start_api_server()
            except ControlPlaneFailed as failed:
                self._end()
                if attempt == _STARTS - 1 or "address already in use" not in str(failed):
                    raise
                shutil.rmtree(self.folder / "etcd", ignore_errors=True)
            else:
                return

    def _end(self) -> None:
        for child in (self._api_server, self._etcd):
            if child is not None:
                child.end()
        self._api_server = self._etcd = None

    def _wait(self, child: Child, url: str, headers: dict[str, str]) -> None:
        deadline = time.monotonic() + _READY_SECONDS
        while not self._answers(url, headers):
            check_running(child)
            if time.monotonic() > deadline:
                raise ControlPlaneFailed(f"{child.name} is not ready in time: {child.last_words()}")
            time.sleep(_LOOK_SECONDS)

    def _answers(self, url: str, headers: dict[str, str]) -> bool:
        request = urllib.request.Request(url, headers=headers)  # noqa: S310 - our own https URLs
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=self._context()))
        try:
            with opener.open(request, timeout=_ASK_SECONDS) as answer:
                answer.read()
        except OSError:
            return False
        return True

    def _context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self._keys.authority))
        context.load_cert_chain(self._keys.certificate, self._keys.key)
        return context
