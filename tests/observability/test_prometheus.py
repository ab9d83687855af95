"""A real Prometheus scrapes a replica as the ServiceMonitor tells it to, and answers every query of the dashboard and of the alerts."""

from __future__ import annotations

import asyncio
import json
import re
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from handlers.stage import Stage
from programs import needs, program
from serving.desk import Desk, desk
from serving.test_access import account

MONITORING = Path(__file__).parents[2] / "manifests" / "components" / "monitoring"
DEADLINE = 60.0
#: Prometheus scrapes this often here, so that a rate over some seconds has its samples.
EVERY = "500ms"
#: What has nothing to show where every pod is placed, by itself and without devices.
MAY_BE_EMPTY = {"Waiting, by who rejects", "Groups decided", "Waiting for devices", "Claims made"}

pytestmark = needs("prometheus")


def queries() -> list[tuple[str, str]]:
    """(panel, PromQL), with Grafana's variables filled in."""
    dashboard = json.loads((MONITORING / "dashboard.json").read_text(encoding="utf-8"))
    return [
        (panel["title"], target["expr"].replace("$__rate_interval", "10s").replace("$job", "placewright"))
        for panel in dashboard["panels"]
        for target in panel.get("targets", ())
    ]


class Prometheus:
    """One that runs, and its API."""

    def __init__(self, port: int, session: aiohttp.ClientSession) -> None:
        self._base = f"http://127.0.0.1:{port}/api/v1"
        self._session = session

    async def ask(self, path: str, **parameters: str) -> Any:
        async with self._session.get(f"{self._base}/{path}", params=parameters) as answer:
            found = await answer.json()
            assert found["status"] == "success", found
            return found["data"]

    async def query(self, expression: str) -> list[Any]:
        return list((await self.ask("query", query=expression))["result"])

    async def until(self, expression: str) -> None:
        """Wait until the query has a result."""
        async with asyncio.timeout(DEADLINE):
            while True:
                with suppress(aiohttp.ClientError):  # it is starting
                    if await self.query(expression):
                        return
                await asyncio.sleep(0.1)


@asynccontextmanager
async def prometheus(asked: Desk, token: str, folder: Path) -> AsyncIterator[Prometheus]:
    """One that scrapes the desk, with the path, the scheme and the trust that the ServiceMonitor has."""
    [endpoint] = yaml.safe_load((MONITORING / "servicemonitor.yaml").read_text(encoding="utf-8"))["spec"]["endpoints"]
    scrape = {
        "job_name": "placewright",
        "scheme": endpoint["scheme"],
        "metrics_path": endpoint["path"],
        "tls_config": {"insecure_skip_verify": endpoint["tlsConfig"]["insecureSkipVerify"]},
        "authorization": {"credentials": token},
        "static_configs": [{"targets": [f"127.0.0.1:{asked.served.port}"]}],
    }
    rules = yaml.safe_load((MONITORING / "rules.yaml").read_text(encoding="utf-8"))["spec"]
    (folder / "rules.yml").write_text(yaml.safe_dump(rules), encoding="utf-8")
    settings = {"scrape_interval": EVERY, "scrape_timeout": EVERY, "evaluation_interval": EVERY}
    configuration = {"global": settings, "rule_files": ["rules.yml"], "scrape_configs": [scrape]}
    (folder / "prometheus.yml").write_text(yaml.safe_dump(configuration), encoding="utf-8")
    process = await asyncio.create_subprocess_exec(
        program("prometheus"), f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}",
        "--web.listen-address=127.0.0.1:0", stdin=DEVNULL, stdout=PIPE, stderr=STDOUT,
    )  # fmt: skip
    port = asyncio.get_running_loop().create_future()
    hearing = asyncio.create_task(hear(process, port))
    try:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(DEADLINE)) as session:
            yield Prometheus(await asyncio.wait_for(port, DEADLINE), session)
    finally:
        process.kill()
        await process.wait()
        await hearing


async def hear(process: Process, port: asyncio.Future[int]) -> None:
    """Read its log to the end; the port that it took stands nowhere else."""
    assert process.stdout is not None
    said = []
    async for line in process.stdout:
        said.append(line.decode(errors="replace"))
        found = re.search(r'"Listening on".* address=\S+:(\d+)', said[-1])
        if found and not port.done():
            port.set_result(int(found[1]))
    if not port.done():
        port.set_exception(AssertionError(f"Prometheus does not start: {''.join(said)}"))


async def test_every_query_of_the_dashboard_and_the_alerts_is_answered(stage: Stage, tmp_path: Path) -> None:
    token = account(stage.sandbox, "prometheus", "/metrics")
    async with desk(stage) as asked, prometheus(asked, token, tmp_path) as scraped:
        await asked.until_ready()
        stage.edit_profile(fairness={"by": "Namespace"})
        stage.profile("packed", mode="Shadow", shadows="default", preset="bin-packing", shadow={"budgetPercent": 50})
        await scraped.until('up{job="placewright"} == 1')
        async with asyncio.timeout(DEADLINE):
            while empty := {panel for panel, expression in queries() if not await scraped.query(expression)} - MAY_BE_EMPTY:
                await stage.until(partial(stage.placed, *stage.pods(20)), "pods placed")
                await asyncio.sleep(0.2)  # for the next scrape: a rate takes two
        placed = len(stage.bindings)
        await scraped.until(f'sum(scheduler_schedule_attempts_total{{job="placewright", result="scheduled"}}) == {placed}')
        groups = (await scraped.ask("rules"))["groups"]
        ill = {rule["name"]: rule.get("lastError", "") for group in groups for rule in group["rules"] if rule["health"] == "err"}
        firing = {alert["labels"]["alertname"] for alert in (await scraped.ask("alerts"))["alerts"] if alert["state"] == "firing"}
    assert (empty, ill, firing) == (set(), {}, set())


async def test_without_the_right_to_read_metrics_a_prometheus_sees_a_target_that_is_down(stage: Stage, tmp_path: Path) -> None:
    token = account(stage.sandbox, "prometheus", "/elsewhere")
    async with desk(stage) as asked, prometheus(asked, token, tmp_path) as scraped:
        await scraped.until('up{job="placewright"} == 0')
        [target] = (await scraped.ask("targets"))["activeTargets"]
    assert "403" in target["lastError"]
