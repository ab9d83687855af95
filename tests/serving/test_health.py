"""`/livez`, `/readyz`, `/healthz`: what kubelets and people are told, and when."""

from __future__ import annotations

import asyncio
import logging

import pytest

from handlers.stage import DEADLINE, FAST, HELD, Stage, operator
from kubesandbox.faults import Rule
from placewright.engine.options import EngineOptions
from placewright.serving.endpoints import TOLERATED_SECONDS, LeadRenewal
from placewright.testing import VirtualTime

from .desk import Desk, desk

PATHS = ("/livez", "/readyz", "/healthz")


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("path", PATHS)
async def test_an_operator_at_work_is_ok(path: str, shared: Desk) -> None:
    reply = await shared.get(path)
    assert (reply.status, reply.text) == (200, "ok")
    assert reply.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert reply.headers["X-Content-Type-Options"] == "nosniff"
    assert reply.headers["Cache-Control"] == "no-cache, private"


async def test_while_the_api_server_is_away_it_is_alive_and_not_ready(stage: Stage) -> None:
    stage.sandbox.faults.refuse_connections(3600.0)
    async with desk(stage) as asked:
        assert (await asked.get("/livez")).text == "ok"
        assert (await asked.get("/healthz")).text == "ok"
        assert (await asked.get("/readyz")).status == 500


async def test_what_is_not_listed_yet_keeps_it_from_being_ready(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    stage.sandbox.faults.add(Rule(method="GET", path="/api/v1/nodes", code=500))
    async with desk(stage) as asked:
        await stage.until(lambda: asked.engine.started and len(asked.engine.reading.unsynced()) == 1)
        reply = await asked.get("/readyz/caches")
        assert (reply.status, reply.text) == (500, "internal server error: reason withheld\n")
        assert "readyz: caches fails: not listed yet: /api/v1/nodes" in caplog.text
        assert (await asked.get("/livez")).status == 200
        stage.sandbox.faults.clear()
        await asked.until_ready()
        assert "readyz: caches is ok again" in caplog.text


async def test_why_a_check_fails_is_logged_once(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    stage.sandbox.faults.refuse_connections(3600.0)
    async with desk(stage) as asked:
        for _ in range(5):
            assert (await asked.get("/readyz")).status == 500
        assert caplog.text.count("readyz: caches fails") == 1


async def test_a_replica_that_stands_by_is_ready(stage: Stage) -> None:
    async with operator(stage) as first:
        await stage.until(lambda: first.engine.leading.leadership.active)
        async with desk(stage) as asked:
            await asked.until_ready(leading=False)
            assert first.engine.leading.leadership.active


async def test_a_leader_without_its_profiles_is_not_ready(stage: Stage) -> None:
    stage.sandbox.faults.add(Rule(method="GET", path="/schedulingprofiles", code=500))
    async with desk(stage) as asked:
        await stage.until(lambda: asked.engine.leading.leadership.active and not asked.engine.reading.unsynced())
        reply = await asked.get("/readyz?verbose")
        assert reply.status == 500
        assert "[-]profiles failed: reason withheld\n" in reply.text
        assert "[+]caches ok\n" in reply.text
        stage.sandbox.faults.clear()
        await asked.until_ready()


async def test_a_leader_of_a_cluster_without_profiles_is_ready(stage: Stage) -> None:
    stage.delete_profile()
    async with desk(stage) as asked:
        await asked.until_ready()
        assert asked.engine.deciding.profiles.standings() == {}


async def test_an_operator_that_is_ending_is_alive_and_not_ready(stage: Stage) -> None:
    slow = stage.sandbox.faults.add(Rule(method="POST", path="/binding", latency=HELD, times=1))
    async with desk(stage) as asked:
        await asked.until_ready()
        stage.pod("web")
        await stage.until(lambda: slow.met == 1)
        ending = asyncio.create_task(asked.running.end())
        await stage.until(lambda: asked.engine.ending)
        assert (await asked.get("/readyz/shutdown")).status == 500
        assert (await asked.get("/livez")).status == 200
        stage.sandbox.faults.release()
        await ending


async def test_a_part_that_has_ended_is_no_life(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    async with desk(stage, FAST) as asked:
        await asked.until_ready()
        monkeypatch.setattr(asked.engine, "ended_parts", lambda: ["reconciler"])
        for path in ("/livez", "/healthz", "/readyz"):
            assert "[-]engine failed: reason withheld\n" in (await asked.get(path)).text


async def test_a_lead_that_could_not_be_renewed_for_long_is_told_of(stage: Stage) -> None:
    clock = VirtualTime(0.0)
    async with desk(stage) as asked:
        renewal = LeadRenewal(asked.engine.leading, clock)
        await asked.until_ready()
        # Only the Lease: were all requests refused, the record among the peers might run out before it, and that is another story.
        stage.sandbox.faults.add(Rule(method="PUT", path="/leases/", code=500))
        # That the lead has ended can be seen a moment before anybody is told, and it is what was told that counts.
        await stage.until(lambda: renewal._lost_at is not None)
        assert not asked.engine.leading.leadership.active
        clock.now = TOLERATED_SECONDS
        assert renewal.failing() == ""
        clock.now += 1.0
        assert renewal.failing() == "the Lease names us and was not renewed: the lead ended 21 s ago"


async def test_a_lead_that_went_to_another_is_nothing_to_tell(stage: Stage) -> None:
    clock = VirtualTime(0.0)
    async with desk(stage) as asked:
        renewal = LeadRenewal(asked.engine.leading, clock)
        await asked.until_ready()
        leases = stage.sandbox.resource("coordination.k8s.io", "v1", "leases")
        (lease,) = stage.sandbox.store.listed(leases.key)
        taken = {"holderIdentity": "another", "leaseDurationSeconds": 3600}
        stage.sandbox.writes.modify(leases, lease.namespace, lease.name, lambda current: current["spec"].update(taken))
        await stage.until(lambda: not asked.engine.leading.leadership.active)
        clock.now = 3600.0
        assert renewal.failing() == ""


async def test_a_replica_that_runs_alone_has_no_lead_to_renew(stage: Stage) -> None:
    async with desk(stage, EngineOptions(leader_elect=False)) as asked:
        await asked.until_ready()
        assert (await asked.get("/healthz/leaderElection")).text == "ok"


# --- as kube-scheduler spells it -----------------------------------------------------------------------------------------------------


@pytest.mark.asyncio(loop_scope="module")
async def test_verbose_shows_every_check(shared: Desk) -> None:
    assert (await shared.get("/livez?verbose")).text == "[+]ping ok\n[+]loop ok\n[+]engine ok\nlivez check passed\n"
    assert (await shared.get("/readyz?verbose=1")).text.endswith("[+]shutdown ok\nreadyz check passed\n")


@pytest.mark.asyncio(loop_scope="module")
async def test_one_check_can_be_asked_and_one_that_is_not_there_is_404(shared: Desk) -> None:
    assert (await shared.get("/livez/ping")).text == "ok"
    assert (await shared.get("/livez/caches")).status == 404
    assert (await shared.get("/livez/ping/more")).status == 404


async def test_checks_can_be_left_out_and_what_cannot_is_said(stage: Stage) -> None:
    stage.sandbox.faults.refuse_connections(3600.0)
    async with desk(stage) as asked:
        assert (await asked.get("/readyz?exclude=caches")).text == "ok"
        reply = await asked.get("/readyz?verbose&exclude=caches&exclude=moon")
        assert reply.status == 200
        assert "[+]caches excluded: ok\n" in reply.text
        assert 'warn: some health checks cannot be excluded: no matches for "moon"\n' in reply.text


# --- plain HTTP ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.asyncio(loop_scope="module")
async def test_the_port_without_tls_answers_health_and_nothing_else(shared: Desk) -> None:
    assert (await shared.health("/livez")).text == "ok"
    for path in ("/metrics", "/configz", "/debug/queue", "/"):
        assert (await shared.health(path)).status == 404


async def test_nothing_is_open_where_nothing_was_asked_for(stage: Stage) -> None:
    async with desk(stage, port=None, health_port=None) as asked:
        assert (asked.served.port, asked.served.health_port) == (None, None)


async def test_the_ports_are_free_again_at_the_end(stage: Stage) -> None:
    async with desk(stage) as asked:
        port = asked.served.port
        await asked.until_ready()
    async with asyncio.timeout(DEADLINE), desk(stage, port=port) as again:
        assert again.served.port == port
        assert (await again.get("/livez")).text == "ok"
