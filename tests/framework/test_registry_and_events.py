"""Which plugins there are, what is refused when one is offered, and which events concern which registrations."""

from __future__ import annotations

import asyncio
import re
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, cast

import pytest

from framework.test_scalar_plugins import AtMostTwo, ByLength
from placewright.api.profile import default_profile
from placewright.cli.doctor.profiles import packages
from placewright.cli.main import main
from placewright.framework import registry as registry_room
from placewright.framework.events import FORCE_ACTIVATE, WILDCARD, Action, ClusterEvent, EventResource
from placewright.framework.interface import CycleState, Plugin
from placewright.framework.registry import PluginRegistrationError, Registry, installed_plugins
from placewright.framework.status import SUCCESS, Code, Status, error, unresolvable, unschedulable
from placewright.plugins.catalog import in_tree
from placewright.profiles.problem import ProfileError
from placewright.profiles.resolve import resolve


class Impostor(ByLength):
    """Claims another plugin's name."""

    name = "AtMostTwo"


class Nameless(Plugin):
    """Has no name."""


def test_a_registry_knows_its_plugins_by_name() -> None:
    registry = Registry([AtMostTwo]).extended([ByLength])
    assert dict(registry) == {"AtMostTwo": AtMostTwo, "ByLength": ByLength}
    assert len(Registry([])) == 0


def test_a_name_is_taken_once_and_the_error_names_both() -> None:
    both = r"plugin AtMostTwo: is registered twice: .*test_scalar_plugins, .*test_registry"
    with pytest.raises(PluginRegistrationError, match=both) as refused:
        Registry([AtMostTwo]).extended([Impostor])
    assert refused.value.plugin == "AtMostTwo"
    with pytest.raises(PluginRegistrationError, match="plugin NodeName: is registered twice"):
        in_tree().extended([type("Mine", (Plugin,), {"name": "NodeName"})])


def test_a_plugin_needs_a_name() -> None:
    with pytest.raises(PluginRegistrationError, match="plugin Nameless: has no name"):
        Registry([Nameless])


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("no.such.module:Plugin", "does not load from no.such.module:Plugin: ModuleNotFoundError: No module named 'no'"),
        (f"{__name__}:missing", "does not load from .*: module .* has no attribute 'missing'"),
        (f"{__name__}:in_tree", "is not a subclass of placewright.framework.interface.Plugin"),
        ("builtins:dict", "builtins:dict is not a subclass of"),
    ],
)
def test_an_entry_point_that_offers_no_plugin_stops_only_profiles_that_name_it(
    monkeypatch: pytest.MonkeyPatch, target: str, said: str
) -> None:
    offers = [EntryPoint("Mine", target, "group"), EntryPoint("ByLength", f"{ByLength.__module__}:ByLength", "group")]
    monkeypatch.setattr(registry_room, "entry_points", lambda *, group: offers)
    registry = in_tree().with_installed(installed_plugins())
    assert dict(registry) == {**in_tree(), "ByLength": ByLength}
    assert list(registry.broken) == ["Mine"]
    assert re.search(said, registry.broken["Mine"])
    resolve(default_profile(), registry)
    with pytest.raises(ProfileError) as refused:
        resolve(default_profile(weights={"Mine": 2}), registry)
    (problem,) = refused.value.problems
    assert (problem.path, problem.allowed) == ("spec.weights.Mine", f"a plugin that works; the installed one {registry.broken['Mine']}")


def test_a_broken_package_is_told_by_doctor_and_stops_neither_validate_nor_doctor(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(registry_room, "entry_points", lambda *, group: [EntryPoint("Mine", "no.such.module:Plugin", group)])
    form = "{{apiVersion: placewright.dev/v1alpha1, kind: SchedulingProfile, metadata: {{name: p}}, spec: {{schedulerName: p{}}}}}"
    codes = []
    for weights in ("", ", weights: {Mine: 3}"):
        (tmp_path / "p.yaml").write_text(form.format(weights))
        codes.append(main(["validate", str(tmp_path / "p.yaml")]))
    assert codes[0] == 0
    assert codes[1] != 0
    assert "the installed one does not load from no.such.module:Plugin" in "".join(capsys.readouterr())
    (found,) = asyncio.run(packages(cast("Any", None)))
    assert (found.level, found.says[:40]) == ("warn", "plugin Mine does not load from no.such.m")


def test_a_name_that_two_packages_offer_is_neither_s_and_one_of_the_tree_stays() -> None:
    mine = type("Mine", (Plugin,), {"name": "NodeName"})
    registry = in_tree().with_installed([AtMostTwo, mine, Impostor, Nameless])
    assert dict(registry) == dict(in_tree())
    assert set(registry.broken) == {"AtMostTwo", "NodeName", "Nameless"}
    assert resolve(default_profile(), registry).scheduler_name == "default-scheduler"


NODE_UPDATE = ClusterEvent(EventResource.NODE, Action.UPDATE_NODE_LABEL)


@pytest.mark.parametrize(
    ("event", "registered", "concerned"),
    [
        (NODE_UPDATE, ClusterEvent(EventResource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL), True),
        (NODE_UPDATE, ClusterEvent(EventResource.NODE, Action.UPDATE), True),
        (NODE_UPDATE, ClusterEvent(EventResource.NODE, Action.UPDATE_NODE_TAINT), False),
        (NODE_UPDATE, ClusterEvent(EventResource.POD, Action.ALL), False),
        (NODE_UPDATE, WILDCARD, True),
        (ClusterEvent(EventResource.ASSIGNED_POD, Action.DELETE), ClusterEvent(EventResource.POD, Action.DELETE), True),
        (ClusterEvent(EventResource.UNSCHEDULED_POD, Action.UPDATE_OTHER), ClusterEvent(EventResource.POD, Action.UPDATE), True),
        (ClusterEvent(EventResource.UNSCHEDULED_POD, Action.DELETE), ClusterEvent(EventResource.ASSIGNED_POD, Action.DELETE), False),
    ],
)
def test_an_event_concerns_who_registered_its_kind_and_any_of_its_actions(
    event: ClusterEvent, registered: ClusterEvent, concerned: bool
) -> None:
    assert event.concerns(registered) is concerned


def test_only_everything_about_anything_is_the_wildcard() -> None:
    assert WILDCARD.wildcard
    assert FORCE_ACTIVATE.wildcard
    assert not ClusterEvent(EventResource.ANY, Action.ADD).wildcard
    assert not ClusterEvent(EventResource.NODE, Action.ALL).wildcard


def test_a_status_knows_whether_it_is_a_rejection() -> None:
    assert [s.rejected for s in (unschedulable(), unresolvable(), Status(Code.PENDING))] == [True] * 3
    assert not any(s.rejected for s in (SUCCESS, error("x"), Status(Code.SKIP), Status(Code.WAIT)))
    assert unschedulable("a", "b").by("P") == Status(Code.UNSCHEDULABLE, ("a", "b"), "P")
    assert unschedulable("a", "b").message == "a, b"


def test_cycle_state_gives_back_what_was_written_as_what_it_was() -> None:
    state = CycleState()
    state.write("k", 7)
    assert state.read("k", int) == 7
    with pytest.raises(TypeError, match="cycle state 'k' holds int, not str"):
        state.read("k", str)
    with pytest.raises(KeyError):
        state.read("never", int)
