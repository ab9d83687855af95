"""A demo in the browser. Its operator serves a console, and a console on this machine passes it on."""

from __future__ import annotations

import webbrowser
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from placewright.cli.operatorport import OperatorPlace
from placewright.http.listener import bind
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright.kube.history import DEFAULT_NAMESPACE
from placewright_console.local.liveconsole import live_console
from placewright_console.local.localserver import LOOPBACK
from placewright_lab.demo.operatorprocess import operator_command

#: Pods a second, which a person can follow on the map.
SHOWN_RATE: Final = 20
#: Seconds for which each step of the jobs stands still for the person.
LOOKING_SECONDS: Final = 8.0


class ShownDemo:
    """The console of one demo."""

    def __init__(self, *, open_browser: bool = False) -> None:
        """Choose a port for the operator. `open_browser` also opens the browser."""
        with bind(LOOPBACK, 0, "--console") as listening:
            self._port: int = listening.getsockname()[1]
        self._open_browser = open_browser

    def command(self, kubeconfig: Path) -> list[str]:
        """Return the operator's command for this kubeconfig, with the console switched on."""
        return operator_command(kubeconfig, self._port)

    @asynccontextmanager
    async def console(self, kubeconfig: Path, say: Callable[[str], None]) -> AsyncIterator[None]:
        """Serve the console of this kubeconfig's cluster while the context is open. `say` takes the address.

        The operator may begin later.
        """
        # This client is not the demo's, but like that of a person who looks at a cluster. The cluster is a toy, so changes are allowed.
        async with ApiClient(load_config(str(kubeconfig)), user_agent="placewright-cli") as client:
            place = OperatorPlace(client, str(kubeconfig), None, DEFAULT_NAMESPACE)
            at = f"https://{LOOPBACK}:{self._port}"
            async with live_console(place, bind(LOOPBACK, 0, "--console"), server=at, allow_changes=True) as served:
                say(f"the console: {served.url}\n")
                if self._open_browser:
                    webbrowser.open(served.url)
                yield
