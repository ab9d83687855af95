"""What holds after every test, whatever happened in it."""

from __future__ import annotations

import re
from typing import Final

from handlers.placement_checker import Obstacle, World
from lab.controlplane.onceaudit import exactly_once
from placewright.kube.writers.binder import CONCURRENCY
from placewright_lab.controlplane.audit import denied

from .installation import USER
from .stage import Stage

#: How long the audit log may lag behind the watch, seconds.
_LOG_SECONDS: Final = 5.0
#: A line of an operator's log that begins a record: date, time, level.
_RECORD: Final = re.compile(r"^\d{4}-\d\d-\d\dT[\d:.]+Z (?P<level>[A-Z]+) ")

#: Kopf's own: its loggers, and what it lets the event loop say when it pauses while a watch is being opened.
_KOPFS: Final = re.compile(r"^\S+ [A-Z]+ (kopf\.|asyncio: .*request_cancel_callback)")
#: uvloop's own, where a connection ends on both sides while the process is frozen.
_UVLOOPS: Final = "ERROR asyncio: Fatal error on SSL protocol"


async def check(stage: Stage) -> None:
    """No breakdown in a log, nothing denied, each pod bound once, no node too full, no pod left over that fits."""
    for each in stage.operators:
        assert breakdowns(each.log.read_text(errors="replace")) == [], each.log
    _check_room(stage)
    if stage.installation.control_plane is not None:
        refused = [str(each) for each in denied(stage.records(), USER) if not stage.was_starting(each)]
        assert refused == [], "the operator asked for what its role does not give"
        # The watch may be ahead of the log.
        await stage.views.until(lambda: len(_unexplained(stage)) <= stage.crashes * CONCURRENCY, lambda: _about(stage), _LOG_SECONDS)
        assert exactly_once(stage.binding_requests(), stage.views.placements).faults == ()


def breakdowns(log: str) -> list[str]:
    """Critical records, and those with a traceback.

    Kopf's do not count: a starting server's 404 ends it, and it is started again. Nor does uvloop's of a connection that both sides
    closed while the process was frozen: no code of ours is in it.
    """
    found, record = [], ""
    for line in log.splitlines():
        begins = _RECORD.match(line)
        record = line if begins else record
        broke = line.startswith("Traceback ") and not _KOPFS.search(record) and _UVLOOPS not in record
        if broke or (begins and begins["level"] == "CRITICAL"):
            found.append(record or line)
    return found


def world_of(stage: Stage) -> World:
    """Nodes and pods, for the plain checker."""
    nodes = {name: each.as_json() for name, each in stage.views.nodes.items()}
    return World(nodes, [each.as_json() for each in stage.own_pods().values()], {}, {}, {}, {}, {}, ())


def overfull(world: World) -> list[str]:
    """A line for each pod on a node with more on it than it allocates."""
    placed = [(pod, world.nodes[pod["spec"]["nodeName"]]) for pod in world.placed({})]
    return [
        f"{pod['metadata']['name']} is on {pod['spec']['nodeName']}" for pod, node in placed if Obstacle.RESOURCES in world.met(pod, node)
    ]


def _check_room(stage: Stage) -> None:
    world = world_of(stage)
    assert overfull(world) == []
    left = [pod for pod in world.pods if not pod["spec"].get("nodeName")]
    fitting = {pod["metadata"]["name"]: [name for name, node in world.nodes.items() if not world.met(pod, node)] for pod in left}
    assert {name: nodes for name, nodes in fitting.items() if nodes} == {}, "pods were left over that fit"


def _unexplained(stage: Stage) -> tuple[str, ...]:
    return exactly_once(stage.binding_requests(), stage.views.placements).unexplained


def _about(stage: Stage) -> str:
    left = _unexplained(stage)
    about = [each for each in stage.binding_requests() if left and each.uid == left[0]]
    return f"{len(left)} pods are on nodes that no Binding in the log explains; what is known of one of them: {about}"
