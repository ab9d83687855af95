"""Computes the plugins that run at each extension point from a profile's lists.

Two steps, as in kube-scheduler. First the default plugins are merged with the profile's `multiPoint`. A disabled plugin is
dropped, and a plugin that is named again keeps its place with the new weight. Any other plugin is appended. Then `multiPoint` is expanded
into every point that its plugins implement. A point's own plugins come first if they are also in `multiPoint`, and else last.

`check` reports unknown names and duplicates; this module skips an unknown name. The origin of each part (the defaults, the preset, or a
field of the profile) follows from the same decisions; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from placewright.api.profile import PluginRef, Plugins, PluginSet, ProfileSpec
from placewright.framework.runtime.resolvedprofile import ExtensionPoint, Origin, Origins
from placewright.profiles.defaults import DEFAULT_PLUGINS, Catalogue, default_plugins
from placewright.profiles.presets import find_preset, preset_fields, preset_weights

#: Entry of `disabled` that stands for every plugin of multiPoint and the defaults.
ALL: Final = "*"
MULTI_POINT: Final = "multiPoint"


def plugin_set(plugins: Plugins, point: ExtensionPoint) -> PluginSet:
    """Read the profile's own set at an extension point."""
    value: PluginSet = getattr(plugins, point.name.lower())
    return value


def merge_defaults(chosen: PluginSet, catalogue: Catalogue, added: Sequence[str] = ()) -> list[PluginRef]:
    """Merge the profile's `multiPoint` with the default plugins.

    Args:
        chosen: the profile's `multiPoint`.
        catalogue: the plugins that exist here.
        added: plugins that the preset adds; they run after the default plugins.
    """
    enabled = {ref.name: ref for ref in chosen.enabled or ()}
    disabled = {ref.name for ref in chosen.disabled or ()}
    known = [*default_plugins(catalogue), *(name for name in added if name in catalogue)]
    kept = [] if ALL in disabled else [name for name in known if name not in disabled]
    # A default plugin that is named again keeps its place: kube-scheduler changes its weight only.
    merged = [enabled.get(name) or _default(name, catalogue) for name in kept]
    return merged + [ref for name, ref in enabled.items() if name not in kept]


def expand(plugins: Plugins, multi_point: Sequence[PluginRef], catalogue: Catalogue) -> dict[ExtensionPoint, tuple[str, ...]]:
    """Expand `multiPoint` at every extension point.

    Returns:
        Plugin names in run order, by extension point.
    """
    return {point: _expand_at(point, plugin_set(plugins, point), multi_point, catalogue) for point in ExtensionPoint}


def score_weights(plugins: Plugins, multi_point: Sequence[PluginRef], catalogue: Catalogue) -> dict[str, int]:
    """Compute the weight of every plugin that may score. The score point's weights precede those of `multiPoint`."""
    refs = [*(plugins.score.enabled or ()), *multi_point]
    weights: dict[str, int] = {}
    for ref in refs:
        plugin = catalogue.get(ref.name)
        if plugin is not None and ExtensionPoint.SCORE.implemented_by(plugin):
            weights.setdefault(ref.name, ref.weight or _unstated_weight(ref.name, catalogue))
    return weights


def _unstated_weight(name: str, catalogue: Catalogue) -> int:
    # Naming one of kube-scheduler's plugins without a weight means 1 there, even where its default profile gives it another weight.
    return 1 if name in DEFAULT_PLUGINS else catalogue[name].default_weight


def _default(name: str, catalogue: Catalogue) -> PluginRef:
    return PluginRef(name=name, weight=catalogue[name].default_weight)


def _expand_at(point: ExtensionPoint, own: PluginSet, multi_point: Sequence[PluginRef], catalogue: Catalogue) -> tuple[str, ...]:
    enabled = [ref.name for ref in own.enabled or ()]
    disabled = {ref.name for ref in own.disabled or ()}
    if ALL in disabled:
        return tuple(enabled)
    expanded = [
        ref.name for ref in multi_point if ref.name in catalogue and ref.name not in disabled and point.implemented_by(catalogue[ref.name])
    ]
    # The point's own order goes first: that is how a profile runs one plugin before the others at one point.
    overriding = [name for name in enabled if name in expanded]
    inherited = [name for name in expanded if name not in enabled]
    additional = [name for name in enabled if name not in expanded]
    return tuple(overriding + inherited + additional)


#: Fields that kube-scheduler's files add to a plugin's arguments.
_TYPE_META: Final = frozenset({"apiVersion", "kind"})


def origins_of(spec: ProfileSpec, points: Mapping[ExtensionPoint, Iterable[str]], weights: Iterable[str], args: Iterable[str]) -> Origins:
    """Find out where plugins, weights and arguments came from. Only for a profile that passed the checks.

    Returns:
        The origins: the defaults, the preset, or a field of the profile.
    """
    return Origins(
        plugins=MappingProxyType({point: _plugins(spec, point, names) for point, names in points.items()}),
        weights=MappingProxyType({name: _weight(spec, name) for name in weights}),
        args=MappingProxyType({name: fields for name in args if (fields := _fields(spec, name))}),
    )


def _plugins(spec: ProfileSpec, point: ExtensionPoint, names: Iterable[str]) -> Mapping[str, Origin]:
    own = _named(spec.plugins.multi_point) | _named(plugin_set(spec.plugins, point))
    lent = set(find_preset(spec.preset).adds)
    return MappingProxyType({name: Origin.PLUGINS if name in own else Origin.PRESET if name in lent else Origin.DEFAULT for name in names})


def _weight(spec: ProfileSpec, name: str) -> Origin:
    if name in (spec.weights or {}):
        return Origin.WEIGHTS
    if name in _named(spec.plugins.score) | _named(spec.plugins.multi_point):
        return Origin.PLUGINS
    return Origin.PRESET if name in preset_weights(find_preset(spec.preset), spec.plugins) else Origin.DEFAULT


def _fields(spec: ProfileSpec, name: str) -> Mapping[str, Origin]:
    own = next((config.args for config in spec.plugin_config or () if config.name == name), None)
    said = {field for field, value in without_type_meta(own).items() if value is not None}
    lent = preset_fields(find_preset(spec.preset), name, own)
    return MappingProxyType(dict.fromkeys(lent, Origin.PRESET) | dict.fromkeys(sorted(said), Origin.PLUGIN_CONFIG))


def without_type_meta(args: Mapping[str, Any] | None) -> dict[str, Any]:
    """Remove apiVersion and kind from a plugin's arguments: they name the version of kube-scheduler that the arguments are for."""
    return {name: value for name, value in (args or {}).items() if name not in _TYPE_META}


def _named(chosen: PluginSet) -> set[str]:
    return {ref.name for ref in chosen.enabled or ()}
