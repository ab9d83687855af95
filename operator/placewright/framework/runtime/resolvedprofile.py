"""A profile with every question answered: which plugins run where, in which order, with which weights and arguments.

`placewright.profiles` makes one from what people wrote; the framework's runtime is built from it and asks no further. Nothing in it
changes afterwards: another generation is another `ResolvedProfile`.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Self

from placewright.api.compatibility import Rule
from placewright.api.extenders import ExtenderSettings
from placewright.api.profile import ProfileSpec
from placewright.framework.interface import (
    BindPlugin,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
)


class ExtensionPoint(enum.StrEnum):
    """The points a pod passes, in that order; the values are the field names of `spec.plugins`."""

    PRE_ENQUEUE = "preEnqueue", PreEnqueuePlugin
    QUEUE_SORT = "queueSort", QueueSortPlugin
    PRE_FILTER = "preFilter", PreFilterPlugin
    FILTER = "filter", FilterPlugin
    POST_FILTER = "postFilter", PostFilterPlugin
    PRE_SCORE = "preScore", PreScorePlugin
    SCORE = "score", ScorePlugin
    RESERVE = "reserve", ReservePlugin
    PERMIT = "permit", PermitPlugin
    PRE_BIND = "preBind", PreBindPlugin
    BIND = "bind", BindPlugin
    POST_BIND = "postBind", PostBindPlugin

    #: The base class that a plugin of this point extends.
    base: type[Plugin]

    def __new__(cls, value: str, base: type[Plugin]) -> Self:
        """Make the member from its name in a profile and its base class."""
        point = str.__new__(cls, value)
        point._value_, point.base = value, base
        return point

    def implemented_by(self, plugin: type[Plugin]) -> bool:
        """Judge whether a plugin has something to do at this point."""
        return self.base in plugin.__mro__  # issubclass() asks an abstract base class, which looks at all that extend it


class Origin(enum.StrEnum):
    """Where something in a profile came from; the later goes before the earlier."""

    DEFAULT = "default"
    PRESET = "preset"
    PLUGINS = "plugins"
    PLUGIN_CONFIG = "pluginConfig"
    WEIGHTS = "weights"


@dataclass(frozen=True, slots=True)
class Origins:
    """Where each part of a profile came from, for people who ask; nothing is decided by it.

    Attributes:
        plugins: origin of every plugin at every extension point: `DEFAULT`, or `PLUGINS` if the profile names it.
        weights: origin of every weight: `DEFAULT`, `PRESET`, `PLUGINS` or `WEIGHTS`.
        args: origin of each argument, `PRESET` or `PLUGIN_CONFIG`, by plugin and field, as documents spell it. Other fields have the
            plugin's default.
    """

    plugins: Mapping[ExtensionPoint, Mapping[str, Origin]] = field(default_factory=dict)
    weights: Mapping[str, Origin] = field(default_factory=dict)
    args: Mapping[str, Mapping[str, Origin]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ResolvedProfile:
    """One generation of one profile, checked and defaulted.

    A field that merging with the defaults changes has an attribute. Other fields are read from `settings`, so that a new one needs no line
    here.

    Attributes:
        scheduler_name: the `spec.schedulerName` of the pods that it places.
        name: the SchedulingProfile object's name; `uid` and `generation` are the object's too ("" and 0 when it came from a file).
        points: plugin names in run order, for every extension point (empty tuples included).
        weights: weight of each plugin in `points[SCORE]`, 1 or more.
        args: instance of `Args` of every plugin that `points` names.
        settings: backoff, `paused`, `percentage_of_nodes_to_score` (1 to 100; None means every node) and all else of
            `api.profile.SETTINGS`; its other fields say nothing.
        rules: rules in force that versions of kube-scheduler differ in.
        extenders: extenders in the order in which they are called: as written, but `ignorable` extenders last.
        shadows: the name of the profile beside which it decides without binding; None for a profile that places pods.
        shadow_budget: share of the time that it may take then, 0 to 1.
        preset: name of the settings that the profile started from; `default` is kube-scheduler's own default profile.
        preempting: the PostFilter plugin that preempts; "" if none does.
        unused_args: plugins that the profile has arguments for and does not run.
        origins: origins of plugins, weights and arguments. Profiles that decide alike are equal even if they differ in this.
    """

    scheduler_name: str
    name: str
    uid: str
    generation: int
    points: Mapping[ExtensionPoint, tuple[str, ...]]
    weights: Mapping[str, int]
    args: Mapping[str, object]
    settings: ProfileSpec
    rules: AbstractSet[Rule] = frozenset()
    extenders: tuple[ExtenderSettings, ...] = ()
    shadows: str | None = None
    shadow_budget: float = 0.05
    preset: str = field(default="default", compare=False)
    preempting: str = field(default="", compare=False)
    unused_args: tuple[str, ...] = field(default=(), compare=False)
    origins: Origins = field(default_factory=Origins, compare=False)

    def at(self, point: ExtensionPoint) -> tuple[str, ...]:
        """List the plugins of a point.

        Returns:
            Their names, in run order.
        """
        return self.points.get(point, ())

    @property
    def plugin_names(self) -> tuple[str, ...]:
        """Every plugin of the profile once, in the order in which a pod first meets it."""
        return tuple(dict.fromkeys(name for point in ExtensionPoint for name in self.at(point)))
