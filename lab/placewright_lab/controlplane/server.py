"""etcd and kube-apiserver as child processes, on free loopback ports, with TLS, RBAC, service accounts and an audit log.

There is no controller manager of itself, as in envtest: no default service accounts or tokens are made, no namespaces end, no garbage is
collected and no budgets are counted. What a test needs of that it does itself, or it starts one (`controllermanager.py`).
"""

from __future__ import annotations

import shutil
import ssl
import tempfile
import time
import urllib.request
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from kubesandbox.auth.credentials import write_private
from placewright_lab.controlplane.assets import Assets
from placewright_lab.controlplane.children import Child, ControlPlaneFailed, free_ports
from placewright_lab.controlplane.flags import PLAIN, Features, Keys, api_server_flags, etcd_flags

_READY_SECONDS: Final = 90.0
_LOOK_SECONDS: Final = 0.05
_ASK_SECONDS: Final = 10.0
_STARTS: Final = 3


@dataclass(frozen=True, slots=True)
class Options:
    """The differences of a control plane from the usual one.

    Attributes:
        audit: whether every request is logged, for `ControlPlane.audit_log`; costs the server time, so benchmarks do without.
        kubeconfig: where the administrator's kubeconfig is written; None for a temporary file.
        port: of the API server; 0 for a free one.
        features: what it has beyond its version's defaults.
    """

    audit: bool = True
    kubeconfig: Path | None = None
    port: int = 0
    features: Features = PLAIN


class ControlPlane:
    """Runs while its context is open. Not bound to an event loop: entering waits until the API server is ready.

    Attributes:
        assets: the programs that run.
        folder: temporary; holds keys, data and logs, gone at the end.
        server: the URL of the API server.
        kubeconfig: of a user in system:masters.
        audit_log: JSON lines, one a request (`audit.py` reads them).
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
        # The processes first: their last writes would make the removal of the folder fail.
        self._end()
        self._closing.close()

    @property
    def keys(self) -> Keys:
        """Its files."""
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
        """Raise `ControlPlaneFailed`, with its last words, when a program has ended by itself."""
        for child in (self._etcd, self._api_server):
            if child is not None and child.ended:
                raise ControlPlaneFailed(f"{child.name} ended: {child.last_words()}")

    def kubeconfig_of(self, token: str, path: Path) -> Path:
        """Write the kubeconfig of the owner of this bearer token, and return its path."""
        write_private(path, self._keys.credentials.kubeconfig(self.server, token))
        return path

    def start_api_server(self) -> None:
        """Start it again on the same port, and wait until it is ready."""
        self.launch_api_server()
        self.wait_until_ready()

    def launch_api_server(self) -> None:
        """Start it again on the same port, and do not wait."""
        audit_log = self.audit_log if self._options.audit else None
        flags = api_server_flags(self.assets.minor, self._ports, self._keys, audit_log, self._options.features)
        self._api_server = Child(self.assets.kube_apiserver, flags, self.folder)

    def wait_until_ready(self) -> None:
        """Return when the API server, which was started, is ready; may be called from any thread."""
        assert self._api_server is not None, "the API server was not started"
        self._wait(self._api_server, f"{self.server}/readyz", {"Authorization": f"Bearer {self._keys.credentials.token}"})

    def launch_etcd(self) -> None:
        """Start etcd again with its data, without waiting: the API server is ready (`wait_until_ready`) once it has found it."""
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
            if child.ended or time.monotonic() > deadline:
                raise ControlPlaneFailed(f"{child.name} {'ended' if child.ended else 'is not ready in time'}: {child.last_words()}")
            time.sleep(_LOOK_SECONDS)

    def _answers(self, url: str, headers: dict[str, str]) -> bool:
        try:
            self._ask(url, headers)
        except OSError:
            return False
        return True

    def _ask(self, url: str, headers: dict[str, str], body: bytes | None = None) -> bytes:
        request = urllib.request.Request(url, body, headers)  # noqa: S310 - our own https URLs
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=self._context()))
        with opener.open(request, timeout=_ASK_SECONDS) as answer:
            content: bytes = answer.read()
        return content

    def _context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self._keys.authority))
        context.load_cert_chain(self._keys.certificate, self._keys.key)
        return context
