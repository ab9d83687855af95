"""SchedulingProfiles in a few words: `profile().enable("QuietNodes", weight=5).args("QuietNodes", most=2)`."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final, Self

import msgspec

from placewright.api.decode import decode
from placewright.api.profile import DEFAULT_SCHEDULER_NAME, GROUP, VERSION, SchedulingProfile
from placewright.framework.interface import Plugin
from placewright.framework.registry import Registry
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.plugins.catalog import in_tree
from placewright.profiles.resolve import resolve
from placewright.testing.objectmaker import Body, PlainMaker

_MULTI_POINT: Final = "multiPoint"


class ProfileMaker(PlainMaker[SchedulingProfile]):
    """Builds a SchedulingProfile step by step; see `profile`."""

    api_version = f"{GROUP}/{VERSION}"
    namespaced = False

    def scheduler(self, name: str) -> Self:
        """Set the schedulerName: whose pods the profile takes."""
        return self.spec(schedulerName=name)

    def generation(self, generation: int) -> Self:
        """Set the generation; 1 without this."""
        return self.metadata(generation=generation)

    def enable(self, plugin: str | type[Plugin], *, weight: int = 0, point: str = _MULTI_POINT) -> Self:
        """Enable a plugin, by name or by class.

        Args:
            plugin: a plugin of the tree, or one that `resolved` is given.
            weight: weight of its score; 0: the plugin's default.
            point: an extension point, as `preFilter` or `score`; without one, all points that the plugin implements.

        Returns:
            A new maker; this one stays as it is.

        Example:
            profile().enable(QuietNodes, weight=5).enable("ImageLocality", point="score")
        """
        entry = {"name": _name(plugin)} | ({"weight": weight} if weight else {})
        return self._plugins(point, "enabled", entry)

    def disable(self, *plugins: str | type[Plugin], point: str = _MULTI_POINT) -> Self:
        """Disable plugins.

        Args:
            plugins: names or classes; `*` disables all.
            point: an extension point, as `preFilter` or `score`; without one, all points.

        Returns:
            A new maker; this one stays as it is.
        """
        return self._plugins(point, "disabled", *({"name": _name(plugin)} for plugin in plugins))

    def only(self, *plugins: str | type[Plugin]) -> Self:
        """Disable all plugins but these, PrioritySort and DefaultBinder, without which no profile runs."""
        made = self.disable("*")
        for plugin in ("PrioritySort", *plugins, "DefaultBinder"):
            made = made.enable(plugin)
        return made

    def args(self, plugin: str | type[Plugin], **args: Any) -> Self:
        """Give a plugin arguments, spelled as in a manifest."""
        return self._append("spec", "pluginConfig", {"name": _name(plugin), "args": args})

    def weights(self, **weights: int) -> Self:
        """Set weights of scores, by plugin."""
        return self.spec(weights={**self._body["spec"].get("weights", {}), **weights})

    def backoff(self, *, initial: float, longest: float) -> Self:
        """Set how long rejected pods wait.

        Args:
            initial: seconds after the first attempt. Each further attempt doubles the wait.
            longest: seconds that a wait lasts at most.

        Returns:
            A new maker; this one stays as it is.
        """
        return self.spec(backoff={"initialSeconds": initial, "maxSeconds": longest})

    def paused(self) -> Self:
        """Keep the profile's pods where they are."""
        return self.spec(paused=True)

    def _plugins(self, point: str, field: str, *entries: Body) -> Self:
        plugins = self._body["spec"].get("plugins", {})
        kept = plugins.get(point, {})
        return self.spec(plugins={**plugins, point: {**kept, field: [*kept.get(field, ()), *entries]}})

    def resolved(self, *plugins: type[Plugin]) -> ResolvedProfile:
        """Check the profile, merge it with the defaults and convert the arguments.

        Args:
            plugins: that are not in the tree.

        Returns:
            The profile as `World` and `PluginCase` run it; equal profiles may be one object.

        Raises:
            ProfileError: the profile is wrong; the message names each field.
        """
        # As bytes, because a dictionary cannot be the key of a cache.
        return _resolved(msgspec.json.encode(self.manifest), plugins)


def profile(name: str = "default") -> ProfileMaker:
    """Begin a SchedulingProfile for pods of `default-scheduler`, with kube-scheduler's default plugins.

    Example:
        profile().enable(QuietNodes, weight=5).args(QuietNodes, most=2).resolved(QuietNodes)
    """
    return ProfileMaker(name).scheduler(DEFAULT_SCHEDULER_NAME).generation(1)


def require_plugin(plugin: object) -> None:
    """Refuse a value that is no class of a plugin, before its attributes are asked for.

    Raises:
        TypeError: with what was found and what is allowed.
    """
    if isinstance(plugin, type) and issubclass(plugin, Plugin) and plugin is not Plugin:
        return
    found = f"the class {plugin.__qualname__}" if isinstance(plugin, type) else f"{plugin!r}"
    allowed = "a class that extends an extension point of placewright.framework.interface, such as FilterPlugin or ScorePlugin"
    raise TypeError(f"plugin: found {found}; allowed {allowed}")


def registry_with(plugins: Iterable[type[Plugin]]) -> Registry:
    """Return the plugins of the tree and these; one that is in the tree may be named, too.

    Raises:
        PluginRegistrationError: two different plugins have one name.
    """
    known = in_tree()
    return known.extended([plugin for plugin in plugins if known.get(plugin.name) is not plugin])


def _name(plugin: str | type[Plugin]) -> str:
    return plugin if isinstance(plugin, str) else plugin.name


# A resolved profile is frozen, and tests make thousands of worlds under a few profiles.
@lru_cache(maxsize=256)
def _resolved(manifest: bytes, plugins: tuple[type[Plugin], ...]) -> ResolvedProfile:
    return resolve(decode(manifest, SchedulingProfile), registry_with(plugins))
