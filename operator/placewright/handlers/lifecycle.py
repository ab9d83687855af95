"""Kopf's startup, login and cleanup.

`placewright run` brings its own engine in the memo, so that it outlives a restart of Kopf; under `kopf run` the engine is made here.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from typing import Any

import aiohttp
import kopf

from placewright.engine.engine import Engine, build_engine
from placewright.handlers.admission import AdmissionServer
from placewright.handlers.settings import configure
from placewright.kube.auth.login import load_config

_logger = logging.getLogger(__name__)


@kopf.on.startup(errors=kopf.ErrorsMode.PERMANENT)
async def start(settings: kopf.OperatorSettings, memo: kopf.Memo, **_: Any) -> None:
    """Make and start the engine, unless somebody brought one."""
    if "engine" in memo:
        # Kopf ends and comes back inside this process; it must not have the process killed some minutes after it ended.
        settings.process.ultimate_exiting_timeout = None
    else:
        memo.engine = engine = build_engine(load_config())
        memo.owns_engine = True
        await engine.start()
        memo.health = asyncio.create_task(_end_with(engine))
    options = memo.engine.options
    configure(settings, memo.engine.replica)
    settings.peering.standalone = not options.leader_elect
    settings.peering.mandatory = options.leader_elect  # else Kopf would wait for a peering that nobody is to watch
    if options.admission is not None:
        settings.admission.server = AdmissionServer(options.admission, memo.engine.client)


async def _end_with(engine: Engine) -> None:
    """End the process in order when a part of the engine has ended: what is left would only look alive."""
    _logger.critical("%s; the operator ends, to be started again", await engine.broken())
    signal.raise_signal(signal.SIGTERM)


@kopf.on.login()
async def login(memo: kopf.Memo, **_: Any) -> kopf.AiohttpSession:
    """A session with the same server, certificates and token that the engine uses."""
    access = memo.engine.access
    if memo.get("logged_in"):
        access.rejected()  # Kopf logs in again only after a 401
    await access.refresh_when_due()
    memo.logged_in = True
    headers = {"Authorization": access.authorization} if access.authorization else {}
    connector = aiohttp.TCPConnector(limit=0, ssl=access.tls)
    return kopf.AiohttpSession(
        server=access.server, aiohttp_session=aiohttp.ClientSession(connector=connector, headers=headers, proxy=access.proxy)
    )


@kopf.on.cleanup()
async def stop(memo: kopf.Memo, **_: Any) -> None:
    """Stop the engine that was made here."""
    memo.logged_in = False
    if memo.get("owns_engine"):
        if "health" in memo:
            memo.health.cancel()
        await memo.engine.stop()
