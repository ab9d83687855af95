"""A plugin that does not return is ended and named: in the kit, and in commands that need no cluster."""

from __future__ import annotations

import contextlib
import itertools
import signal
import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest

from placewright.api.objects import Node, NodeName
from placewright.api.pods import PodInfo
from placewright.cli.main import main
from placewright.framework.errors import PluginError
from placewright.framework.interface import CycleState, ReservePlugin
from placewright.framework.runtime.calllimit import limited_calls
from placewright.framework.scalar import ScalarFilter
from placewright.framework.status import SUCCESS, Status
from placewright.testing import BrokenPromiseError, PluginCase, Promise, World, check_plugin, node, pod
from placewright_lab.commands import evaluate, simulate
from placewright_lab.simulation import sweep

SOON = 0.2


def turns() -> None:
    for _ in itertools.count():
        pass


def swallows() -> None:
    while True:
        with contextlib.suppress(Exception):
            threading.Event().wait()


def sleeps() -> None:
    time.sleep(3600)


class Hangs(ScalarFilter):
    name = "Hangs"
    how: Callable[[], None] = staticmethod(sleeps)

    def filter_node(self, pod: PodInfo, node: Node, pods: Collection[PodInfo]) -> Status:
        type(self).how()
        return SUCCESS


class HangsInReserve(ReservePlugin):
    name = "HangsInReserve"

    def reserve(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status:
        sleeps()
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node: NodeName) -> None:
        """Has taken nothing."""


class HangsAtBirth(Hangs):
    name = "HangsAtBirth"

    def __init__(self, args: Any, handle: Any) -> None:
        super().__init__(args, handle)
        sleeps()


@pytest.mark.parametrize("how", [turns, swallows, sleeps])
def test_a_check_names_the_plugin_and_the_point_that_did_not_return(how: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Hangs, "how", staticmethod(how))
    with pytest.raises(BrokenPromiseError) as red:
        check_plugin(Hangs, call_seconds=SOON)
    assert (red.value.plugin, red.value.promise, red.value.point) == ("Hangs", Promise.RETURNS, "Filter")
    assert "it did not return within 0.2 s" in str(red.value)
    assert "node n0 is there" in red.value.example


@pytest.mark.parametrize(("plugin", "point"), [(Hangs, "Filter"), (HangsInReserve, "Reserve"), (HangsAtBirth, "New")])
def test_a_world_names_them(plugin: Any, point: str) -> None:
    with pytest.raises(PluginError, match=r"it did not return within 0\.2 s") as red:
        World(plugin, nodes=[node("a")], call_seconds=SOON).add(pod("web"))
    assert (red.value.plugin, red.value.point) == (plugin.name, point)


def test_a_case_names_them_at_every_point() -> None:
    case = PluginCase(Hangs, nodes=[node("a")], call_seconds=SOON)
    with pytest.raises(PluginError, match=r'^running Filter plugin "Hangs": it did not return within 0\.2 s$'):
        case.rejections(pod("web"))
    reserving = PluginCase(HangsInReserve, nodes=[node("a")], call_seconds=SOON)
    with pytest.raises(PluginError, match=r'^running Reserve plugin "HangsInReserve": it did not return within 0\.2 s$'):
        reserving.plugin.reserve(CycleState(), pod("web"), "a")


def test_the_timer_and_the_handler_of_the_caller_are_set_again() -> None:
    fired: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _frame: fired.append(number))
    old = signal.setitimer(signal.ITIMER_REAL, 3000, 7)
    try:
        with limited_calls(SOON):
            assert signal.getsignal(signal.SIGALRM) is not None
        rest, interval = signal.getitimer(signal.ITIMER_REAL)
        assert 2900 < rest <= 3000
        assert interval == 7
        signal.raise_signal(signal.SIGALRM)
        assert fired == [signal.SIGALRM]
    finally:
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, *old)


def test_a_thread_that_is_not_the_main_one_has_no_limit() -> None:
    seen: list[str] = []

    def check() -> None:
        with limited_calls(SOON):
            seen.append("went on")

    thread = threading.Thread(target=check)
    thread.start()
    thread.join()
    assert seen == ["went on"]


PROFILE = """
kind: SchedulingProfile
apiVersion: placewright.dev/v1alpha1
metadata: {name: mine}
spec: {schedulerName: default-scheduler, plugins: {multiPoint: {enabled: [{name: NAME}]}}}
"""
CLUSTER = """
{apiVersion: v1, kind: Node, metadata: {name: a}, status: {allocatable: {cpu: "4", pods: "10"}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: c}]}}
"""


@pytest.mark.parametrize(
    ("command", "plugin", "point"),
    [
        ("evaluate", Hangs, "Filter"),
        ("evaluate", HangsAtBirth, "New"),
        ("simulate", Hangs, "Filter"),
        ("simulate", HangsInReserve, "Reserve"),
        ("simulate", HangsAtBirth, "New"),
    ],
)
def test_a_command_ends_with_2_and_names_them(
    command: str, plugin: Any, point: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in (evaluate, simulate):
        monkeypatch.setattr(module, "installed_plugins", lambda: [plugin])
    for module in (evaluate, sweep):
        monkeypatch.setattr(module, "limited_calls", lambda: limited_calls(SOON))
    (tmp_path / "profile.yaml").write_text(PROFILE.replace("NAME", plugin.name))
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    assert main([command, "-f", str(tmp_path / "cluster.yaml"), "--profile", str(tmp_path / "profile.yaml")]) == 2
    said = capsys.readouterr().err
    assert f'running {point} plugin "{plugin.name}": it did not return within 0.2 s' in said
