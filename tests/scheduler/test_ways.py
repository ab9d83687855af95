"""The modules that docs/architecture.md lists for a pod's way and for a profile's way are all passed.

`make trends` counts all that a plain pod touches.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, cast

from placewright.api.decode import convert
from placewright.api.profile import SchedulingProfile
from placewright.engine.profilekeeper import ProfileKeeper
from placewright.framework.runtime.evaluation import Evaluator
from placewright.framework.runtime.handle import ProfileHandle
from placewright.plugins.catalog import in_tree
from placewright.profiles.live import LiveProfiles, Swap
from placewright.queue.queued import SubQueue

from .makers import World, node, pod

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "operator" / "placewright"


@contextmanager
def walked() -> Iterator[set[str]]:
    """Note the modules whose functions are called."""
    passed: set[str] = set()

    def called(frame: FrameType, _event: str, _arg: Any) -> None:
        code = frame.f_code
        module = code.co_filename.removeprefix(f"{PACKAGE}/")
        if module != code.co_filename and code.co_name not in ("__init__", "<module>"):
            passed.add(module)

    before = sys.gettrace()
    sys.settrace(called)
    try:
        yield passed
    finally:
        sys.settrace(before)


def listed(heading: str) -> list[str]:
    """The modules that the page lists under a heading."""
    section = (ROOT / "docs" / "architecture.md").read_text().partition(f"\n### {heading}\n")[2].partition("\n#")[0]
    return re.findall(r"^\d+\. `([a-z/]+\.py)`", section, re.MULTILINE)


async def test_a_plain_pod_passes_the_modules_that_the_architecture_lists() -> None:
    world = World().nodes(node("a"), node("b")).pods(pod("first"))
    await world.attempt()
    with walked() as way:
        world.pods(pod("web"))
        assert await world.attempt()
    assert [name for name, *_ in world.binder.bound] == ["first", "web"]
    modules = listed("Modules of a plain pod's way")
    assert len(modules) == len(set(modules)) > 0
    assert set(modules) <= way


class Reporter:
    """Notes nothing."""

    def seen(self, profile: SchedulingProfile) -> None:
        """Not looked at."""

    def note(self, standing: object) -> None:
        """Not looked at."""


def changed(generation: int, **spec: Any) -> SchedulingProfile:
    metadata = {"name": "default", "uid": "uid", "generation": generation}
    return convert({"metadata": metadata, "spec": {"schedulerName": "default-scheduler", **spec}}, SchedulingProfile)


def test_a_changed_profile_passes_the_modules_that_the_architecture_lists() -> None:
    world = World().nodes(node("a")).pods(pod("big").requests(cpu="64"))
    world.decide()
    registry, nobody = in_tree(), cast(Any, None)

    def swapped(swap: Swap[Evaluator]) -> None:
        if swap.after is not None:
            world.profiles[swap.scheduler_name] = swap.after.evaluator
        world.queue.reprioritise(swap.scheduler_name, None)

    live = LiveProfiles[Evaluator](
        registry, lambda profile: ProfileHandle(world.cluster, nominations=world.queue.nominator).evaluator(profile, registry), swapped
    )
    keeper = ProfileKeeper(nobody, live, world.queue, lambda: True, cast(Any, Reporter()), nobody, nobody)
    keeper.apply(changed(1))
    args = [{"name": "NodeResourcesFit", "args": {"ignoredResources": ["example.com/fake"]}}]
    without_images = {"score": {"disabled": [{"name": "ImageLocality"}]}}
    with walked() as way:
        keeper.apply(changed(2, weights={"NodeAffinity": 5}, pluginConfig=args, plugins=without_images))
    active = live.by_scheduler_name("default-scheduler")
    assert active is not None
    assert active.profile.generation == 2
    assert world.place("big") in (SubQueue.ACTIVE, SubQueue.BACKOFF), "the new generation may have a node for it"
    modules = listed("Modules of a profile's way")
    assert len(modules) == len(set(modules)) > 0
    assert set(modules) <= way
