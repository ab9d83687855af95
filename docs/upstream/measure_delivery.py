"""CPU that delivering an event of a watch costs, by each way that Kopf has or could have: `python docs/upstream/measure_delivery.py`.

An API server of its own process streams pods that come and go, as unscheduled pods do. The operator's process has one handler, which
counts. Each way runs in a process of its own, all of them in turns; the table has medians. With `--patched FOLDER`, a folder that holds
Kopf with the patches beside this file applied, the proposed ways are measured too.
"""  # noqa: INP001 - a program beside what it is about, not a package

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import aiohttp
import kopf
import msgspec
from aiohttp import web

Way = Callable[["Counter", str], Coroutine[Any, Any, None]]

#: Pods in one run: two events each.
PODS: Final = 2000
#: Pods that come before the first of them goes again.
_WINDOW: Final = 100
#: After the last event, so that the end of Kopf's workers is counted, in seconds.
_AFTERMATH: Final = 1.5


# --- the API server ---------------------------------------------------------------------------------------------------------------------


def _pod(number: int) -> dict[str, Any]:
    """A pod of about 1.5 kB."""
    container = {
        "name": "main", "image": "example.test/main:1", "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
        "env": [{"name": f"VARIABLE_{at}", "value": "of some length"} for at in range(10)],
        "volumeMounts": [{"name": "token", "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
    }  # fmt: skip
    metadata = {"name": f"web-{number}", "namespace": "default", "uid": f"uid-{number}", "resourceVersion": str(number + 2)}
    spec = {"schedulerName": "placewright", "containers": [container], "priority": 0, "restartPolicy": "Always"}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}


async def _serve_pods(request: web.Request) -> web.StreamResponse:
    if "watch" not in request.query:
        return web.json_response({"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []})
    answer = web.StreamResponse(headers={"Content-Type": "application/json"})
    await answer.prepare(request)
    await asyncio.sleep(1.0)  # what Kopf does at its start is over by then
    for first in range(0, PODS, _WINDOW):
        pods = [_pod(number) for number in range(first, first + _WINDOW)]
        for kind in ("ADDED", "DELETED"):
            await answer.write(b"".join(json.dumps({"type": kind, "object": pod}).encode() + b"\n" for pod in pods))
    await asyncio.Event().wait()
    return answer


async def _serve() -> None:
    verbs = ["list", "watch", "patch", "get"]
    pods = {"name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod", "verbs": verbs}
    namespaces = {"name": "namespaces", "singularName": "namespace", "namespaced": False, "kind": "Namespace", "verbs": verbs}
    answers = {"/api": {"versions": ["v1"]}, "/apis": {"groups": []}, "/api/v1": {"resources": [pods, namespaces]}}
    application = web.Application()
    for path, content in answers.items():
        application.router.add_get(path, lambda _, content=content: web.json_response(content))
    application.router.add_get("/api/v1/pods", _serve_pods)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


# --- the ways ---------------------------------------------------------------------------------------------------------------------------


class Counter:
    """Counts events, and the process's CPU from the first to the last and what comes of it."""

    def __init__(self) -> None:
        self.count, self.started = 0, 0.0
        self.all_came = asyncio.Event()

    def take(self) -> None:
        """Count an event."""
        if not self.count:
            self.started = time.process_time()
        self.count += 1
        if self.count == 2 * PODS:
            self.all_came.set()

    async def microseconds(self) -> float:
        """CPU an event, once all have come."""
        await self.all_came.wait()
        await asyncio.sleep(_AFTERMATH)
        return (time.process_time() - self.started) / self.count * 1e6


def _registry(counter: Counter, url: str, tuned: bool, **declared: Any) -> tuple[kopf.OperatorRegistry, Any]:
    registry = kopf.OperatorRegistry()

    async def start(settings: kopf.OperatorSettings, **_: Any) -> None:
        settings.posting.enabled = False
        settings.peering.standalone = True
        settings.scanning.disabled = True
        if tuned:
            from placewright.handlers.settings import NoDiffBase  # noqa: PLC0415 - the ways of Kopf alone need nothing of ours

            settings.persistence.diffbase_storage = NoDiffBase()
            settings.queueing.idle_timeout = float(os.environ.get("IDLE_SECONDS", "0.5"))
            logging.getLogger("kopf.objects").setLevel(logging.WARNING)
        if "json_loads" in os.environ:
            settings.networking.json_loads = msgspec.json.decode  # type: ignore[attr-defined]

    async def login(**_: Any) -> kopf.AiohttpSession:
        return kopf.AiohttpSession(server=url, aiohttp_session=aiohttp.ClientSession())

    async def pod_event(**_: Any) -> None:
        counter.take()

    kopf.on.startup(registry=registry)(start)
    kopf.on.login(registry=registry)(login)
    kopf.on.event("", "v1", "pods", registry=registry, **declared)(pod_event)
    return registry, pod_event


async def _spawned(registry: kopf.OperatorRegistry) -> None:
    roots = await kopf.spawn_tasks(registry=registry, clusterwide=True, memo=kopf.Memo())
    await asyncio.wait(roots, return_when=asyncio.FIRST_COMPLETED)
    for root in roots:
        if root.done():
            root.result()


async def as_it_comes(counter: Counter, url: str) -> None:
    """Kopf with its own settings."""
    await _spawned(_registry(counter, url, tuned=False)[0])


async def tuned(counter: Counter, url: str) -> None:
    """Kopf with the public settings that make it cheaper."""
    await _spawned(_registry(counter, url, tuned=True)[0])


async def processor(counter: Counter, url: str) -> None:
    """Kopf with another processor of events (private): its workers and queues, without its preparations."""
    from kopf._core.reactor import processing  # noqa: PLC0415

    async def process(**_: Any) -> None:
        counter.take()

    processing.process_resource_event = process  # type: ignore[assignment]
    await _spawned(_registry(counter, url, tuned=True)[0])


async def adapter(counter: Counter, url: str) -> None:
    """Kopf with our adapter."""
    from placewright.handlers import directdelivery, watchlines  # noqa: PLC0415

    registry, handler = _registry(counter, url, tuned=True)
    directdelivery.delivered_directly(handler)
    with ExitStack() as replaced:
        replaced.enter_context(directdelivery.direct_delivery(registry, kopf.Memo()))
        if "QUICK" in os.environ:
            replaced.enter_context(watchlines.quick_decoding())
        await _spawned(registry)


async def patched(counter: Counter, url: str) -> None:
    """Kopf with the proposed `direct=True`."""
    await _spawned(_registry(counter, url, tuned=True, direct=True)[0])


async def bare(counter: Counter, url: str) -> None:
    """No Kopf: aiohttp's lines, decoded by json."""

    async def lines() -> AsyncIterator[bytes]:
        async with aiohttp.ClientSession() as session, session.get(f"{url}/api/v1/pods?watch=true") as answer:
            async for line in answer.content:
                yield line

    async for line in lines():
        json.loads(line)
        counter.take()


#: (name, function, environment)
WAYS: Final[list[tuple[str, Way, dict[str, str]]]] = [
    ("Kopf as it comes", as_it_comes, {}),
    ("Kopf with cheaper public settings", tuned, {}),
    ("the same, workers that live for 0.05 s", tuned, {"IDLE_SECONDS": "0.05"}),
    ("the same, workers that live for 5 s", tuned, {"IDLE_SECONDS": "5"}),
    ("another processor behind Kopf's workers", processor, {}),
    ("the adapter", adapter, {}),
    ("the adapter, lines decoded by msgspec", adapter, {"QUICK": "1"}),
    ("no Kopf: aiohttp's lines and json", bare, {}),
]
PROPOSED: Final[list[tuple[str, Way, dict[str, str]]]] = [
    ("Kopf with the patch, `direct=True`", patched, {}),
    ("the same, `json_loads` of msgspec", patched, {"json_loads": "1"}),
]


# --- the run ----------------------------------------------------------------------------------------------------------------------------


async def _measure(way: Way, url: str) -> float:
    counter = Counter()
    working = asyncio.ensure_future(way(counter, url))
    measuring = asyncio.ensure_future(counter.microseconds())
    await asyncio.wait((working, measuring), return_when=asyncio.FIRST_COMPLETED)
    if not measuring.done():
        working.result()
    return measuring.result()


def main() -> None:
    """Measure every way in turns and print a table, or, called by itself, serve or measure one way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--patched", type=Path)
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--way", type=int)
    parser.add_argument("--url")
    given = parser.parse_args()
    ways = WAYS + (PROPOSED if given.patched else [])
    if given.serve:
        asyncio.run(_serve())
    elif given.way is not None:
        import uvloop  # noqa: PLC0415 - as `placewright run` has it

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            print(runner.run(_measure(ways[given.way][1], given.url)), flush=True)
            os._exit(0)  # Kopf would end in order, and take its time
    else:
        _in_turns(given, ways)


def _in_turns(given: argparse.Namespace, ways: list[tuple[str, Way, dict[str, str]]]) -> None:
    serving = subprocess.Popen([sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True)
    try:
        assert serving.stdout is not None
        url = f"http://127.0.0.1:{int(serving.stdout.readline())}"
        found: dict[str, list[float]] = {}
        for _ in range(given.rounds):
            for number, (name, _way, environment) in enumerate(ways):
                folder = {"PYTHONPATH": str(given.patched)} if number >= len(WAYS) else {}
                argv = [sys.executable, __file__, "--way", str(number), "--url", url, "--patched", str(given.patched or "")]
                answer = subprocess.run(
                    argv if given.patched else argv[:-2], env={**os.environ, **environment, **folder},
                    stdout=subprocess.PIPE, text=True, check=True,
                )  # fmt: skip
                found.setdefault(name, []).append(float(answer.stdout))
                print(f"{name}: {float(answer.stdout):.0f}", file=sys.stderr, flush=True)
    finally:
        serving.kill()
    print(f"| {2 * PODS} events a run, {given.rounds} runs each in turns | µs of CPU an event (median) | least and most |\n|---|---|---|")
    for name, each in found.items():
        print(f"| {name} | {statistics.median(each):.0f} | {min(each):.0f} to {max(each):.0f} |")


if __name__ == "__main__":
    main()
