"""Plugin classes by name: ours, and those that installed packages offer under the entry point group `placewright.plugins`."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from placewright.framework.errors import PluginRegistrationError
from placewright.framework.interface import Plugin

ENTRY_POINT_GROUP: Final = "placewright.plugins"


class Registry(Mapping[str, type[Plugin]]):
    """An immutable map from plugin name to class. Raises `PluginRegistrationError` on a name taken twice."""

    def __init__(self, plugins: Iterable[type[Plugin]]) -> None:
        self._plugins: dict[str, type[Plugin]] = {}
        for plugin in plugins:
            name = getattr(plugin, "name", "")
            if not name or not isinstance(name, str):
                raise PluginRegistrationError(plugin.__qualname__, "has no name")
            if name in self._plugins:
                raise PluginRegistrationError(name, f"is registered twice: {self._plugins[name].__module__}, {plugin.__module__}")
            self._plugins[name] = plugin

    def __getitem__(self, name: str) -> type[Plugin]:
        return self._plugins[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._plugins)

    def __len__(self) -> int:
        return len(self._plugins)

    def extended(self, plugins: Iterable[type[Plugin]]) -> Registry:
        """A registry with these plugins added."""
        return Registry((*self._plugins.values(), *plugins))


def installed_plugins() -> list[type[Plugin]]:
    """Plugin classes that installed packages offer; raise `PluginRegistrationError` on one that does not load or is no plugin."""
    return [_load(entry) for entry in entry_points(group=ENTRY_POINT_GROUP)]


class InstalledPlugins:
    """Names of plugins that packages on disk offer. It looks once, when it is asked first: that takes milliseconds."""

    def __init__(self) -> None:
        self._names: frozenset[str] | None = None

    def __contains__(self, name: str) -> bool:
        """To be asked about names that were not there at the start."""
        if self._names is None:
            importlib.invalidate_caches()  # what was installed within the second is found, too
            self._names = frozenset(each for entry in entry_points(group=ENTRY_POINT_GROUP) for each in (entry.name, entry.attr))
        return name in self._names


def installed_since(name: str) -> bool:
    """Whether a package on disk offers a plugin of this name now."""
    return name in InstalledPlugins()


def _load(entry: EntryPoint) -> type[Plugin]:
    try:
        loaded = entry.load()
    except (Exception, SystemExit) as problem:
        raise PluginRegistrationError(entry.name, f"does not load from {entry.value}: {problem}") from problem
    if not (isinstance(loaded, type) and issubclass(loaded, Plugin)):
        raise PluginRegistrationError(entry.name, f"{entry.value} is not a subclass of placewright.framework.interface.Plugin")
    return loaded
