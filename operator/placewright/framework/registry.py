"""Plugin classes by name: ours, and the classes that installed packages offer under the entry point group `placewright.plugins`."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from placewright.framework.errors import PluginRegistrationError, raised
from placewright.framework.interface import Plugin
from placewright.framework.patches import ObjectPatch
from placewright.framework.sources import AnySource

ENTRY_POINT_GROUP: Final = "placewright.plugins"


@dataclass(frozen=True, slots=True)
class BrokenPlugin:
    """A plugin that an installed package offers and that cannot be used.

    Attributes:
        name: name of the entry point.
        problem: why it cannot be used.
    """

    name: str
    problem: str


class Registry(Mapping[str, type[Plugin]]):
    """An immutable map from plugin name to class.

    Args:
        plugins: classes with a `name` each.

    Attributes:
        sources: each source that a plugin declares, with the name of the first such plugin, by the kind's name.
        broken: reason why a plugin of an installed package cannot be used, by name. A profile that names it is refused with this reason,
            unless another plugin has the name.

    Raises:
        PluginRegistrationError: a class has no name, two classes have the same, or two plugins declare one kind differently.
    """

    def __init__(self, plugins: Iterable[type[Plugin]]) -> None:
        self._plugins: dict[str, type[Plugin]] = {}
        self.sources: dict[str, tuple[AnySource, str]] = {}
        self.broken: dict[str, str] = {}
        for plugin in plugins:
            self._add(plugin)

    def _add(self, plugin: type[Plugin]) -> None:
        name = getattr(plugin, "name", "")
        if not name or not isinstance(name, str):
            raise PluginRegistrationError(plugin.__qualname__, "has no name")
        if name in self._plugins:
            raise PluginRegistrationError(name, f"is registered twice: {self._plugins[name].__module__}, {plugin.__module__}")
        for source in plugin.sources:
            known, by = self.sources.setdefault(source.name, (source, plugin.name))
            if known != source:
                raise PluginRegistrationError(plugin.name, f"declares the source {source.name} otherwise than {by} does")
        self._plugins[name] = plugin

    def __getitem__(self, name: str) -> type[Plugin]:
        return self._plugins[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._plugins)

    def __len__(self) -> int:
        return len(self._plugins)

    def patches(self) -> Iterator[tuple[ObjectPatch, str]]:
        """Yield the objects that plugins write, each with the name of its plugin."""
        return ((patch, plugin.name) for plugin in self._plugins.values() for patch in plugin.patches)

    def extended(self, plugins: Iterable[type[Plugin]]) -> Registry:
        """Return a registry with these plugins added; this one stays as it is.

        Raises:
            PluginRegistrationError: as when a registry is made.

        Example:
            registry = Registry([Seats]).extended([Racks])
        """
        return Registry((*self._plugins.values(), *plugins))

    def with_installed(self, offered: Iterable[type[Plugin] | BrokenPlugin]) -> Registry:
        """Return a registry with the plugins of installed packages added; this one stays as it is.

        A package that cannot be used stops only the profiles that name its plugin, so nothing is raised: `broken` has the reason. Two
        packages that offer one name are both broken, because the order of installation must not choose between them.

        Args:
            offered: the answer of `installed_plugins`.

        Example:
            registry = in_tree().with_installed(installed_plugins())
        """
        made = Registry(self._plugins.values())
        for each in offered:
            if isinstance(each, BrokenPlugin):
                made.broken[each.name] = each.problem
                continue
            try:
                made._add(each)
            except PluginRegistrationError as problem:
                made.broken[problem.plugin] = problem.problem
        for name in made.broken.keys() - self._plugins.keys():
            made._plugins.pop(name, None)
        made.sources = {kind: (source, by) for kind, (source, by) in made.sources.items() if by in made._plugins}
        return made


def installed_plugins() -> list[type[Plugin] | BrokenPlugin]:
    """Load the plugin classes that installed packages offer under `placewright.plugins`.

    Returns:
        The classes, in the order in which Python finds the packages. An entry point that does not load, or that is no subclass of `Plugin`,
        has its reason in its place.
    """
    return [_load(entry) for entry in entry_points(group=ENTRY_POINT_GROUP)]


@cache
def installed_sources() -> tuple[AnySource, ...]:
    """Return what installed packages read; looked up once, for readers of files that meet a kind that is none of ours."""
    return tuple(source for source, _ in Registry(()).with_installed(installed_plugins()).sources.values())


class InstalledPlugins:
    """Names of plugins that packages on disk offer. It looks once, when it is asked first: that takes milliseconds."""

    def __init__(self) -> None:
        self._names: frozenset[str] | None = None

    def __contains__(self, name: str) -> bool:
        """To be asked about names that were not there at the start."""
        if self._names is None:
            importlib.invalidate_caches()  # a package that was installed within the second is found, too
            self._names = frozenset(each for entry in entry_points(group=ENTRY_POINT_GROUP) for each in (entry.name, entry.attr))
        return name in self._names


def _load(entry: EntryPoint) -> type[Plugin] | BrokenPlugin:
    try:
        loaded = entry.load()
    # SystemExit, too: a package that calls sys.exit() when it is imported must not end the scheduler without a word.
    except MemoryError:
        raise
    except (Exception, SystemExit) as problem:  # noqa: BLE001 - a third-party package; a profile that names its plugin is told
        return BrokenPlugin(entry.name, f"does not load from {entry.value}: {raised(problem)}")
    if not (isinstance(loaded, type) and issubclass(loaded, Plugin)):
        return BrokenPlugin(entry.name, f"{entry.value} is not a subclass of placewright.framework.interface.Plugin")
    return loaded
