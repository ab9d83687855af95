"""Makers for tests of groups: a PodGroup in a few words, and members of it."""

from __future__ import annotations

import itertools
from typing import Any

from placewright.api.decode import convert
from placewright.api.podgroups import GROUP_LABEL, TOPOLOGY_KEY, TOPOLOGY_MODE, CoschedulingPodGroup, NativePodGroup
from scheduler.makers import PodMaker, World, pod

_versions = itertools.count(1)


def group(name: str, members: int, *, timeout: int | None = None, topology: str = "", mode: str = "required") -> CoschedulingPodGroup:
    """A PodGroup of scheduler-plugins in namespace `default`."""
    meta: dict[str, Any] = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": f"g{next(_versions)}"}
    if topology:
        meta["annotations"] = {TOPOLOGY_KEY: topology, TOPOLOGY_MODE: mode}
    spec: dict[str, Any] = {"minMember": members} | ({} if timeout is None else {"scheduleTimeoutSeconds": timeout})
    return convert({"metadata": meta, "spec": spec}, CoschedulingPodGroup)


def native(name: str, members: int | None, **spec: Any) -> NativePodGroup:
    """A PodGroup of Kubernetes' own in namespace `default`; `members` None: of policy `basic`. `spec`: `disruptionMode`, `priority`."""
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": f"g{next(_versions)}"}
    policy: dict[str, Any] = {"basic": {}} if members is None else {"gang": {"minCount": members}}
    return convert({"metadata": meta, "spec": {"schedulingPolicy": policy, **spec}}, NativePodGroup)


def native_member(of: str, name: str, cpu: str = "1") -> PodMaker:
    """A member of a group of Kubernetes' own."""
    maker = pod(name).requests(cpu=cpu)
    maker._spec["schedulingGroup"] = {"podGroupName": of}
    return maker


def member(of: str, index: int, cpu: str = "1") -> PodMaker:
    """`OF-INDEX`, a member of a group."""
    return pod(f"{of}-{index}").labels(**{GROUP_LABEL: of}).requests(cpu=cpu)


def members(of: str, count: int, cpu: str = "1") -> list[PodMaker]:
    """`OF-0` and so on."""
    return [member(of, index, cpu) for index in range(count)]


def bound(world: World) -> list[str]:
    """The names of pods whose Binding was sent, in order."""
    return [name for name, _, _, _ in world.ports.bound]


async def tried(world: World) -> None:
    """Decide and bind whatever waits now."""
    while (queued := world.queue.pop()) is not None:
        binding = world.schedule(queued)
        if binding is not None:
            await binding
