"""Makers for the tests of this room: plugins that only have a shape, and profiles in a few words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

from placewright.api.profile import SchedulingProfile
from placewright.framework.interface import Plugin
from placewright.framework.runtime.resolvedprofile import ExtensionPoint
from placewright.profiles.config import read_profiles


def yaml_of(document: Any) -> str:
    """The document as YAML. Written in C, where there is libyaml, as what is tested is reading it."""
    text: str = yaml.dump(document, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), sort_keys=False)
    return text


def plugin(name: str, *points: str, args: type[Any] | None = None, weight: int = 1) -> type[Plugin]:
    """A plugin class of these points that is never instantiated."""
    bases = tuple(ExtensionPoint(point).base for point in points)
    body: dict[str, Any] = {"name": name, "default_weight": weight}
    if args is not None:
        body["Args"] = args
    return type(name, bases, body)


@dataclass(frozen=True)
class FitArgs:
    """Arguments with a nested type, a rule of their own and a two-word name."""

    ignored_resources: tuple[str, ...] = ()
    top_weight: int = 1
    per_zone: dict[str, int] | None = None

    def validate(self) -> list[tuple[str, str, str]]:
        """Weights end at 100."""
        return [] if self.top_weight <= 100 else [("topWeight", str(self.top_weight), "at most 100")]


CATALOGUE = {
    cls.name: cls
    for cls in (
        plugin("SchedulingGates", "preEnqueue"),
        plugin("PrioritySort", "queueSort"),
        plugin("NodeName", "filter"),
        plugin("TaintToleration", "filter", "preScore", "score", weight=3),
        plugin("NodeAffinity", "preFilter", "filter", "preScore", "score", weight=2),
        plugin("NodeResourcesFit", "preFilter", "filter", "preScore", "score", args=FitArgs),
        plugin("ImageLocality", "score"),
        plugin("DefaultBinder", "bind"),
        # Out of tree:
        plugin("Tetris", "filter", "score", weight=7),
        plugin("Coscheduling", "queueSort", "permit"),
    )
}


def a_profile(spec: dict[str, Any] | None = None, name: str = "p", **metadata: Any) -> SchedulingProfile:
    """A SchedulingProfile with this spec, for the default scheduler's pods unless it says otherwise, read as from a file."""
    document = {
        "apiVersion": "placewright.dev/v1alpha1",
        "kind": "SchedulingProfile",
        "metadata": {"name": name, **metadata},
        "spec": {"schedulerName": "default-scheduler", **(spec or {})},
    }
    return read_profiles(document, "test")[0]
