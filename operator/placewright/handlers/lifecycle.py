"""The handlers of Kopf's startup, login and cleanup.

`placewright run` passes its engine in Kopf's memo, and the engine outlives each restart of Kopf. Under `kopf run` the startup handler makes
the engine, and the cleanup handler stops it.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from typing import Any

import aiohttp
import kopf

from placewright.engine.engine import Engine, build_engine
from placewright.engine.outofmemory import OutOfMemory
from placewright.handlers.admission import AdmissionServer
from placewright.handlers.podassignment import PodAssignment
from placewright.handlers.settings import configure
from placewright.handlers.watchlines import KopfResponse
from placewright.kube.auth.login import load_config

_logger = logging.getLogger(__name__)


@kopf.on.startup(errors=kopf.ErrorsMode.PERMANENT)
async def start(settings: kopf.OperatorSettings, memo: kopf.Memo, **_: Any) -> None:
    """Set Kopf up, and make and start the engine where the memo has none.

    Args:
        settings: Kopf's, changed in place.
        memo: gets `engine`, and `owns_engine` and `health` where the engine is made here.
    """
    if "engine" in memo:
        # Kopf plans a SIGKILL of the process some minutes after its own end. Here it ends and is started again in one process.
        settings.process.ultimate_exiting_timeout = None
    else:
        memo.engine = engine = build_engine(load_config())
        memo.owns_engine = True
        await engine.start()
        memo.health = asyncio.create_task(_end_with(engine))
    options = memo.engine.options
    configure(settings, memo.engine.leading.replica)
    settings.peering.standalone = not options.leader_elect
    settings.peering.mandatory = options.leader_elect  # without election nothing keeps the peering object, and Kopf would wait for it
    if options.admission is not None:
        engine = memo.engine
        assignment = PodAssignment(engine.writing.client, engine.deciding.cluster.objects.namespaces, engine.leading.info.namespace)
        settings.admission.server = AdmissionServer(options.admission, engine.writing.client, assignment)


async def _end_with(engine: Engine) -> None:
    """End the process in order when a part of the engine has ended: the probes would still answer, and nothing would be scheduled."""
    with OutOfMemory() as memory:
        _logger.critical("%s; the operator ends, to be started again", await memory.failure(engine.broken()))
    signal.raise_signal(signal.SIGTERM)


@kopf.on.login()
async def login(memo: kopf.Memo, **_: Any) -> kopf.AiohttpSession:
    """Give Kopf a session with the server, certificates and token of the engine.

    Args:
        memo: has the engine; notes that Kopf has logged in.

    Returns:
        A session of Kopf's own, which closes it: Kopf asks again after each 401.
    """
    access = memo.engine.access
    if memo.get("logged_in"):
        access.rejected()  # Kopf logs in again only after a 401
    await access.refresh_when_due()
    memo.logged_in = True
    headers = {"Authorization": access.authorization} if access.authorization else {}
    connector = aiohttp.TCPConnector(limit=0, ssl=access.tls)
    return kopf.AiohttpSession(
        server=access.server,
        aiohttp_session=aiohttp.ClientSession(connector=connector, headers=headers, proxy=access.proxy, response_class=KopfResponse),
    )


@kopf.on.cleanup()
async def stop(memo: kopf.Memo, **_: Any) -> None:
    """Stop the engine, where the startup handler made it."""
    memo.logged_in = False
    if memo.get("owns_engine"):
        if "health" in memo:
            memo.health.cancel()
        await memo.engine.stop()
