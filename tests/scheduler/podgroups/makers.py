"""Members of groups in a few words, beside the kit's `pod_group` and `coscheduling_group`, and what came of them."""

from __future__ import annotations

from typing import Any

import msgspec

from placewright.api.podgroups import CompositePodGroup, CoschedulingPodGroup, NativePodGroup
from placewright.testing import coscheduling_group, pod_group
from scheduler.makers import PodMaker, World, pod


def group(name: str, members: int, *, timeout: int | None = None, topology: str = "", mode: str = "required") -> CoschedulingPodGroup:
    """A PodGroup of scheduler-plugins in namespace `default`."""
    maker = coscheduling_group(name, members)
    maker = maker if timeout is None else maker.timeout(timeout)
    return (maker.topology(topology, required=mode == "required") if topology else maker).build()


def native(name: str, members: int | None, **spec: Any) -> NativePodGroup:
    """A PodGroup of Kubernetes' own in namespace `default`; `members` None: of policy `basic`. `spec`: `disruptionMode`, `priority`."""
    maker = pod_group(name).basic() if members is None else pod_group(name, members)
    return maker.spec(**spec).build()


def child(name: str, members: int | None, parent: str, **spec: Any) -> NativePodGroup:
    """A PodGroup of Kubernetes' own below a composite group."""
    return native(name, members, parentCompositePodGroupName=parent, **spec)


def composite(name: str, groups: int | None, parent: str | None = None, **spec: Any) -> CompositePodGroup:
    """A group of groups in namespace `default`; `groups` None: of policy `basic`."""
    policy = {"basic": {}} if groups is None else {"gang": {"minGroupCount": groups}}
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    told = {"schedulingPolicy": policy, "parentCompositePodGroupName": parent, **spec}
    return msgspec.convert({"metadata": metadata, "spec": told}, CompositePodGroup)


def native_member(of: str, name: str, cpu: str = "1") -> PodMaker:
    """A member of a group of Kubernetes' own."""
    return pod(name).in_group(of).requests(cpu=cpu)


def member(of: str, index: int, cpu: str = "1") -> PodMaker:
    """`OF-INDEX`, a member of a group."""
    return pod(f"{of}-{index}").in_coscheduling_group(of).requests(cpu=cpu)


def members(of: str, count: int, cpu: str = "1") -> list[PodMaker]:
    """`OF-0` and so on."""
    return [member(of, index, cpu) for index in range(count)]


def bound(world: World) -> list[str]:
    """The names of pods whose Binding was sent, in order."""
    return [name for name, _, _, _ in world.binder.bound]


async def tried(world: World) -> None:
    """Decide and bind whatever waits now."""
    while (queued := world.queue.pop()) is not None:
        binding = world.schedule(queued)
        if binding is not None:
            await binding
