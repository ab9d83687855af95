"""Kopf's startup, login and cleanup.

`placewright run` brings its own engine in the memo, so that it outlives a restart of Kopf; under `kopf run` the engine is made here.
"""

from __future__ import annotations

from typing import Any

import aiohttp
import kopf

from placewright.handlers.engine import Engine
from placewright.handlers.settings import configure
from placewright.kube.login import load_config


@kopf.on.startup()
async def start(settings: kopf.OperatorSettings, memo: kopf.Memo, **_: Any) -> None:
    """Make and start the engine, unless somebody brought one."""
    if "engine" not in memo:
        memo.engine = engine = Engine(load_config())
        memo.owns_engine = True
        await engine.start()
    configure(settings, memo.engine.replica)


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
        await memo.engine.stop()
