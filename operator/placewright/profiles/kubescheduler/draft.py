"""A profile's plugins and arguments while they are rewritten.

The decoded structs are frozen, and edits of their lists of lists are hard to read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from placewright.api.profile import PluginConfig, PluginRef, Plugins, PluginSet
from placewright.profiles.merge import ALL, without_type_meta

MULTI_POINT: Final = "multi_point"
SCORE: Final = "score"
PRE_SCORE: Final = "pre_score"


@dataclass(slots=True)
class DraftSet:
    """The plugins that are enabled and disabled at one point."""

    enabled: list[PluginRef] = field(default_factory=list)
    disabled: list[str] = field(default_factory=list)

    def names(self) -> list[str]:
        """List the enabled plugins."""
        return [ref.name for ref in self.enabled]

    def drops(self, name: str) -> bool:
        """Return whether a plugin of the defaults or of multiPoint would be switched off.

        Returns:
            True when it, or `*`, is disabled.
        """
        return name in self.disabled or ALL in self.disabled

    def enable(self, name: str, weight: int | None = None) -> None:
        """Enable a plugin, in its place if it is enabled already."""
        ref = PluginRef(name=name, weight=weight)
        if name in self.names():
            self.enabled[self.names().index(name)] = ref
        else:
            self.enabled.append(ref)

    def lead(self, name: str) -> None:
        """Enable a plugin in the first place, with its weight if it is enabled already."""
        known = next((ref for ref in self.enabled if ref.name == name), PluginRef(name=name))
        self.enabled = [known, *(ref for ref in self.enabled if ref.name != name)]

    def disable(self, name: str) -> None:
        """Disable a plugin, from whichever layer it comes."""
        self.enabled = [ref for ref in self.enabled if ref.name != name]
        if not self.drops(name):
            self.disabled.append(name)

    def forget(self, names: Iterable[str]) -> None:
        """Remove plugins from both lists."""
        gone = set(names)
        self.enabled = [ref for ref in self.enabled if ref.name not in gone]
        self.disabled = [name for name in self.disabled if name not in gone]


class Draft:
    """Plugins and arguments of one profile.

    Args:
        plugins: plugins of the profile.
        configs: its `pluginConfig`.

    Attributes:
        sets: plugin sets by field of `Plugins`.
        args: arguments by plugin.
    """

    def __init__(self, plugins: Plugins, configs: Iterable[PluginConfig] | None) -> None:
        self.sets = {name: _draft(getattr(plugins, name)) for name in plugins.__struct_fields__}
        self.args: dict[str, dict[str, Any]] = {config.name: without_type_meta(config.args) for config in configs or ()}

    @property
    def multi_point(self) -> DraftSet:
        """The set for all points."""
        return self.sets[MULTI_POINT]

    @property
    def score(self) -> DraftSet:
        """The set of the score point."""
        return self.sets[SCORE]

    def forget(self, names: Iterable[str]) -> None:
        """Remove plugins, at every point, and their arguments."""
        names = set(names)
        for each in self.sets.values():
            each.forget(names)
        self.args = {name: args for name, args in self.args.items() if name not in names}

    def points(self) -> Iterator[tuple[str, DraftSet]]:
        """List the sets.

        Returns:
            (field name as documents spell it, set).
        """
        spelled = dict(zip(Plugins.__struct_fields__, Plugins.__struct_encode_fields__, strict=True))
        return ((spelled[name], each) for name, each in self.sets.items())

    def plugins(self) -> Plugins:
        """Build the plugins as they are now."""
        return Plugins(**{name: _built(each) for name, each in self.sets.items()})

    def plugin_config(self) -> list[PluginConfig] | None:
        """Build the arguments as they are now."""
        return [PluginConfig(name=name, args=args) for name, args in self.args.items()] or None


def _draft(chosen: PluginSet) -> DraftSet:
    return DraftSet(list(chosen.enabled or ()), [ref.name for ref in chosen.disabled or ()])


def _built(draft: DraftSet) -> PluginSet:
    disabled = [PluginRef(name=name) for name in draft.disabled]
    return msgspec.structs.replace(PluginSet(), enabled=draft.enabled or None, disabled=disabled or None)
