"""The modules of a pod's way and of a profile's way are those that docs/architecture.md lists: no other is passed, none is left out."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, cast

import pytest

from placewright.api.decode import convert
from placewright.api.profile import SchedulingProfile
from placewright.engine.profilekeeper import ProfileKeeper
from placewright.framework.runtime.evaluation import Evaluator
from placewright.framework.runtime.handle import NoBinder, build_evaluator
from placewright.plugins.catalog import in_tree
from placewright.profiles.live import LiveProfiles, Swap
from placewright.queue.queued import SubQueue

from .makers import World, node, pod

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "operator" / "placewright"
#: A call that runs no more lines than this looks something up, or passes something on.
ACCESSOR_LINES = 4
#: What a pod and a profile are made of, the plugins that the profile names, and the kit that shows the pod: not steps of the way.
NOT_STEPS = ("api/", "plugins/", "testing/")


class Way:
    """By module, the most lines that one call of one of its functions ran; constructors do not count."""

    def __init__(self) -> None:
        self.lines: Counter[str] = Counter()

    @property
    def modules(self) -> set[str]:
        """The modules that did something."""
        return {module for module, lines in self.lines.items() if lines > ACCESSOR_LINES and not module.startswith(NOT_STEPS)}

    def called(self, frame: FrameType, _event: str, _arg: Any) -> Any:
        """A tracer of calls (`sys.settrace`)."""
        code = frame.f_code
        if not code.co_filename.startswith(f"{PACKAGE}/") or code.co_name in ("__init__", "<module>"):
            return None
        module, ran = code.co_filename.removeprefix(f"{PACKAGE}/"), set[int]()

        def line(frame: FrameType, event: str, _arg: Any) -> Any:
            if event == "line":
                ran.add(frame.f_lineno)
                self.lines[module] = max(self.lines[module], len(ran))
            return line

        return line


@contextmanager
def walked() -> Iterator[Way]:
    way, before = Way(), sys.gettrace()
    sys.settrace(way.called)
    try:
        yield way
    finally:
        sys.settrace(before)


def listed(heading: str) -> list[str]:
    """The modules that the page lists under a heading."""
    section = (ROOT / "docs" / "architecture.md").read_text().partition(f"\n### {heading}\n")[2].partition("\n#")[0]
    return re.findall(r"^\d+\. `([a-z/]+\.py)`", section, re.MULTILINE)


async def test_a_plain_pod_passes_the_modules_that_the_architecture_lists_and_no_other() -> None:
    world = World().nodes(node("a"), node("b")).pods(pod("first"))
    await world.attempt()
    with walked() as way:
        world.pods(pod("web"))
        assert await world.attempt()
    assert [name for name, *_ in world.binder.bound] == ["first", "web"]
    modules = listed("Modules of a plain pod's way")
    assert len(modules) <= 12
    assert way.modules == set(modules)


class Reporter:
    """Notes nothing."""

    def seen(self, profile: SchedulingProfile) -> None:
        """Not looked at."""

    def note(self, standing: object) -> None:
        """Not looked at."""


def changed(generation: int, **spec: Any) -> SchedulingProfile:
    metadata = {"name": "default", "uid": "uid", "generation": generation}
    return convert({"metadata": metadata, "spec": {"schedulerName": "default-scheduler", **spec}}, SchedulingProfile)


def test_a_changed_profile_passes_the_modules_that_the_architecture_lists_and_no_other() -> None:
    world = World().nodes(node("a")).pods(pod("big").requests(cpu="64"))
    world.decide()
    registry, nobody = in_tree(), cast(Any, None)

    def swapped(swap: Swap[Evaluator]) -> None:
        if swap.after is not None:
            world.profiles[swap.scheduler_name] = swap.after.evaluator
        world.queue.reprioritise(swap.scheduler_name, None)

    live = LiveProfiles[Evaluator](
        registry, lambda profile: build_evaluator(profile, registry, world.cluster, NoBinder(), world.queue.nominator), swapped
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
    assert len(modules) <= 10
    assert way.modules == set(modules)


@pytest.mark.parametrize("lines", [ACCESSOR_LINES, ACCESSOR_LINES + 1])
def test_a_module_is_passed_where_a_call_runs_more_lines_than_an_accessor(lines: int) -> None:
    way = Way()
    way.lines["scheduler/cycle.py"] = way.lines["plugins/nodename.py"] = lines
    assert way.modules == ({"scheduler/cycle.py"} if lines > ACCESSOR_LINES else set())
