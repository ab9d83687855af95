"""Where each part of a resolved profile came from: the defaults, the preset, or which field of the profile.

This follows `merge` and `presets`, which decide; a test holds them together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from placewright.api.profile import PluginSet, ProfileSpec
from placewright.framework.runtime.resolvedprofile import ExtensionPoint, Origin, Origins
from placewright.profiles.merge import plugin_set
from placewright.profiles.presets import find_preset, preset_fields, preset_weights

#: What kube-scheduler's files put into arguments beside their fields.
_TYPE_META: Final = frozenset({"apiVersion", "kind"})


def origins_of(spec: ProfileSpec, points: Mapping[ExtensionPoint, Iterable[str]], weights: Iterable[str], args: Iterable[str]) -> Origins:
    """Where the plugins at `points`, the `weights` and the `args` of a profile came from. Only for what the checks have let pass."""
    return Origins(
        plugins=MappingProxyType({point: _plugins(spec, point, names) for point, names in points.items()}),
        weights=MappingProxyType({name: _weight(spec, name) for name in weights}),
        args=MappingProxyType({name: fields for name in args if (fields := _fields(spec, name))}),
    )


def _plugins(spec: ProfileSpec, point: ExtensionPoint, names: Iterable[str]) -> Mapping[str, Origin]:
    own = _named(spec.plugins.multi_point) | _named(plugin_set(spec.plugins, point))
    lent = set(find_preset(spec.preset).adds)
    return MappingProxyType(
        {name: Origin.PLUGINS if name in own else Origin.PRESET if name in lent else Origin.DEFAULT for name in names}
    )


def _weight(spec: ProfileSpec, name: str) -> Origin:
    if name in (spec.weights or {}):
        return Origin.WEIGHTS
    if name in _named(spec.plugins.score) | _named(spec.plugins.multi_point):
        return Origin.PLUGINS
    return Origin.PRESET if name in preset_weights(find_preset(spec.preset), spec.plugins) else Origin.DEFAULT


def _fields(spec: ProfileSpec, name: str) -> Mapping[str, Origin]:
    own = next((config.args for config in spec.plugin_config or () if config.name == name), None)
    said = {field for field, value in (own or {}).items() if value is not None} - _TYPE_META
    lent = preset_fields(find_preset(spec.preset), name, own)
    return MappingProxyType(dict.fromkeys(lent, Origin.PRESET) | dict.fromkeys(sorted(said), Origin.PLUGIN_CONFIG))


def _named(chosen: PluginSet) -> set[str]:
    return {ref.name for ref in chosen.enabled or ()}
