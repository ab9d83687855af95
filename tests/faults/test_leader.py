"""The leader is killed, stands still, or is cut off: another takes over, and nothing is decided twice."""

from __future__ import annotations

from .stage import LIFETIME, Stage, now

#: As many pods as there is room for; beside the one that shows who leads, one has to wait.
BURST = 300
LATER = 50
#: Seconds for which a proxy keeps Bindings: another leads by then, and has given the room away.
HELD_BACK = 2.5 * LIFETIME
#: Pods that fit nowhere: more than are told of at once.
WAITING = 40
#: Seconds by which an API server may be behind.
LAG = 3.0


async def test_leader_killed_in_mid_burst(stage: Stage) -> None:
    await stage.nodes(10, cpu="3")
    await stage.replicas_at_work(2)
    async with stage.burst(BURST):
        await stage.until_bound(stage.random.randrange(20, 150))
        leader, heir = await stage.leader_and_heir()
        await leader.kill()
        killed = now()
        await stage.until_recovered(killed, heir)
    await stage.until_settled()
    assert stage.history.bound == BURST
    senders = [each.replica for each in stage.requests()]
    # The proxy may still read what the leader had sent before it was killed, so the order counts and not the time.
    assert leader.name not in senders[senders.index(heir.name) :]


async def test_leader_frozen_past_its_lifetime_and_thawed(stage: Stage) -> None:
    await stage.nodes(10, cpu="3")
    await stage.replicas_at_work(2)
    async with stage.burst(BURST - LATER):
        await stage.until_bound(stage.random.randrange(20, 100))
        leader, heir = await stage.leader_and_heir()
        leader.freeze()
        frozen = now()
        await stage.until_recovered(frozen, heir)
        await stage.until(lambda: now() > frozen + LIFETIME + stage.random.random(), "its lifetime is over")
        leader.thaw()
    await stage.pods(LATER)
    await stage.until_settled()
    assert stage.history.bound == BURST
    assert leader.alive
    assert heir.alive


async def test_leader_cut_off_and_healed(stage: Stage) -> None:
    await stage.nodes(10, cpu="3")
    await stage.replicas_at_work(2)
    async with stage.burst(BURST - LATER):
        await stage.until_bound(stage.random.randrange(20, 100))
        leader, heir = await stage.leader_and_heir()
        leader.proxy.cut(refuse=stage.random.random() < 0.5)
        cut = now()
        await stage.until_recovered(cut, heir)
        await stage.until(lambda: now() > cut + LIFETIME + stage.random.random(), "its lifetime is over")
        await leader.proxy.heal()
    await stage.pods(LATER)
    await stage.until_settled()
    assert stage.history.bound == BURST
    assert leader.alive
    assert heir.alive


async def test_leader_on_a_machine_that_is_suspended_and_wakes_up(stage: Stage) -> None:
    await stage.nodes(10, cpu="3")
    await stage.replicas_at_work(2, machine="suspended.py")
    async with stage.burst(BURST - LATER):
        await stage.until_bound(stage.random.randrange(20, 100))
        leader, heir = await stage.leader_and_heir()
        # It is not told who leads: by its clocks it has to know that it may not act.
        leader.proxy.trouble.lagging, leader.proxy.trouble.watch_lag = "/leases", 2 * LIFETIME
        leader.freeze()
        frozen = now()
        await stage.until_recovered(frozen, heir)
        leader.thaw()
    await stage.pods(LATER)
    await stage.until_settled()
    assert stage.history.bound == BURST


async def test_bindings_held_back_across_a_change_of_lead(stage: Stage) -> None:
    await stage.nodes(10, cpu="3")
    await stage.priority_class("first", 1000)
    await stage.replicas_at_work(2)
    async with stage.burst(BURST):
        await stage.until_bound(stage.random.randrange(20, 150))
        leader, heir = await stage.leader_and_heir()
        leader.proxy.trouble.held_back = HELD_BACK
        leader.proxy.trouble.lead_refused = True
        await stage.until(lambda: leader.proxy.holding, "Bindings are held back")
        held = now()
        # Others get the room that the leader has promised to those.
        await stage.pods(BURST, priority_class="first")
        await stage.until_recovered(now(), heir)
    await stage.until(lambda: now() > held + HELD_BACK and not leader.proxy.holding, "what was held back was passed on or given up", 60.0)
    await stage.until_settled()
    assert stage.history.bound == BURST


async def test_api_server_that_lags_after_a_clean_handover(stage: Stage) -> None:
    await stage.nodes(10, cpu="3")
    await stage.replicas_at_work(2)
    leader, heir = await stage.leader_and_heir()
    heir.proxy.trouble.watch_lag = LAG
    async with stage.burst(BURST - LATER):
        await stage.until_bound(BURST - LATER)
    # Whoever takes the nodes for empty spreads these evenly, and some nodes have room for one less.
    async with stage.burst(LATER, cpu="200m"):
        ended = now()
        assert await leader.end() == 0
        await stage.until_recovered(ended, heir)
    await stage.until_settled()
    assert stage.history.bound < BURST


async def test_former_leader_whose_statuses_wait(stage: Stage) -> None:
    await stage.nodes(2)
    await stage.replicas_at_work(2)
    leader, heir = await stage.leader_and_heir()
    leader.proxy.trouble.held, leader.proxy.trouble.held_back = "/status", HELD_BACK
    await stage.pods(WAITING, cpu="100")
    await stage.until(lambda: leader.proxy.holding, "statuses are held back")
    held = now()
    leader.proxy.trouble.lead_refused = True
    await stage.until(lambda: stage.history.holders[-1][1].startswith(heir.name), "the other one leads")
    await stage.node("node-2", cpu="4")  # of which only the next leader tells

    def told() -> bool:
        return all("0/3 nodes are available" in pod.condition[2] for pod in stage.history.pods.values() if not pod.node)

    await stage.until(told, "it tells of three nodes")
    leader.proxy.trouble.lead_refused = False
    await stage.until(lambda: now() > held + HELD_BACK and not leader.proxy.holding, "what was held back was passed on or given up", 60.0)
    assert told()
