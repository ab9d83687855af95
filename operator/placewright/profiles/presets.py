"""Presets: whole ways to place pods, chosen by one word in `spec.preset`.

A preset is a layer between the default profile and the profile's own fields: `spec.weights`, `spec.plugins` and `spec.pluginConfig`
override it. It changes weights and arguments of the default plugins, and may add plugins. It never removes a filter, so no preset can place
a pod on a node where it must not be. A preset's arguments of one plugin belong together: they apply unless the profile sets one of the same
fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

import msgspec

from placewright.api.bad_input import in_json
from placewright.api.profile import PluginConfig, Plugins
from placewright.profiles.problem import Problem, did_you_mean

DEFAULT_PRESET: Final = "default"

Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Preset:
    """The changes of a preset to the default profile.

    Attributes:
        summary: its purpose, in one line.
        weights: score weight by plugin; 0 takes the plugin out of scoring.
        args: fields of arguments by plugin, as documents spell them.
        adds: plugins that run after the default ones, at every extension point that they have.
    """

    summary: str
    weights: Mapping[str, int] = field(default_factory=dict)
    args: Mapping[str, Fields] = field(default_factory=dict)
    adds: tuple[str, ...] = ()


def _resources(**weights: int) -> list[dict[str, Any]]:
    return [{"name": name, "weight": weight} for name, weight in weights.items()]


def _soft(topology_key: str) -> dict[str, Any]:
    return {"topologyKey": topology_key, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}


_GPUS: Final = ("nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe")
#: No constraints for pods that have none: spreading them would empty all nodes evenly. A pod's own constraints still count.
_NO_DEFAULT_SPREAD: Final[Fields] = {"defaultingType": "List", "defaultConstraints": []}
_FULL_NODES_FIRST: Final = 5
_FRAGMENTATION_FIRST: Final = 10

PRESETS: Final[Mapping[str, Preset]] = MappingProxyType(
    {
        DEFAULT_PRESET: Preset("kube-scheduler's default profile"),
        # Weights as in OpenShift's HighNodeUtilization.
        "bin-packing": Preset(
            "fill nodes one after the other, so that others can be given back",
            {"NodeResourcesFit": _FULL_NODES_FIRST, "NodeResourcesBalancedAllocation": 0},
            {
                "NodeResourcesFit": {"scoringStrategy": {"type": "MostAllocated", "resources": _resources(cpu=1, memory=1)}},
                "PodTopologySpread": _NO_DEFAULT_SPREAD,
            },
        ),
        "spread": Preset(
            "spread the pods of a Service or workload over zones and nodes as evenly as they go",
            {"PodTopologySpread": 5},
            {
                "PodTopologySpread": {
                    "defaultingType": "List",
                    "defaultConstraints": [_soft("topology.kubernetes.io/zone"), _soft("kubernetes.io/hostname")],
                }
            },
        ),
        "gpu-packing": Preset(
            "fill nodes by their GPUs first, so that whole nodes stay free for pods that want many",
            {"NodeResourcesFit": _FULL_NODES_FIRST, "NodeResourcesBalancedAllocation": 0},
            {
                "NodeResourcesFit": {
                    "scoringStrategy": {
                        "type": "MostAllocated",
                        "resources": [{"name": name, "weight": 5} for name in _GPUS] + _resources(cpu=1, memory=1),
                    }
                },
                "PodTopologySpread": _NO_DEFAULT_SPREAD,
            },
        ),
        "gpu-fragmentation": Preset(
            "keep shares of a GPU on one GPU each, and place pods where they leave most GPUs of use to others",
            # How full nodes are does not score: on the openb trace it costs GPUs, whichever way it counts (docs/fragmentation.md).
            {"DeviceFragmentation": _FRAGMENTATION_FIRST, "NodeResourcesFit": 0, "NodeResourcesBalancedAllocation": 0},
            {"PodTopologySpread": _NO_DEFAULT_SPREAD},
            adds=("DeviceFragmentation",),
        ),
        # OpenShift's NoScoring.
        "no-scoring": Preset(
            "any node that fits, the fastest; plugins that the profile itself enables still score",
            dict.fromkeys(
                (
                    "TaintToleration", "NodeAffinity", "NodeResourcesFit", "VolumeBinding", "PodTopologySpread", "InterPodAffinity",
                    "DynamicResources", "NodeResourcesBalancedAllocation", "ImageLocality",
                ),
                0,
            ),
        ),
    }
)  # fmt: skip


def check_preset(name: str | None) -> Iterator[Problem]:
    """Check `spec.preset`.

    Yields:
        The problem, if the name is unknown.
    """
    if name is not None and name not in PRESETS:
        yield Problem("spec.preset", in_json(name), f"{', '.join(PRESETS)}{did_you_mean(name, PRESETS)}")


def find_preset(name: str | None) -> Preset:
    """Look a preset up.

    Returns:
        The preset; the default one for an unknown name, which `check_preset` reports.
    """
    return PRESETS.get(name or DEFAULT_PRESET, PRESETS[DEFAULT_PRESET])


def preset_weights(preset: Preset, plugins: Plugins) -> dict[str, int]:
    """Select the preset's weights. A plugin that the profile enables itself has the weight of that entry instead."""
    own = {ref.name for chosen in (plugins.multi_point, plugins.score) for ref in chosen.enabled or ()}
    return {name: weight for name, weight in preset.weights.items() if name not in own}


def preset_fields(preset: Preset, plugin: str, own: Fields | None) -> Fields:
    """Select the preset's arguments of a plugin. They apply only as a whole, so none does once the profile sets one of the same fields.

    Args:
        preset: the profile's preset.
        plugin: its name.
        own: the profile's arguments of the plugin; null in a document means absent.
    """
    fields = preset.args.get(plugin, {})
    said = {name for name, value in (own or {}).items() if value is not None}
    return {} if said & fields.keys() else fields


def with_preset(configs: Iterable[PluginConfig], preset: Preset, known: Iterable[str]) -> Sequence[PluginConfig]:
    """Put the preset's arguments under the profile's `pluginConfig`. Entries keep their places, because messages name these.

    Args:
        configs: the profile's `pluginConfig`.
        preset: the profile's preset.
        known: plugins that exist here; arguments of others are left out.

    Returns:
        The merged entries; those of the preset alone come last.
    """
    merged = [_over(config, preset_fields(preset, config.name, config.args)) for config in configs]
    named = {config.name for config in merged}
    known = set(known)
    merged.extend(PluginConfig(name=name, args=dict(args)) for name, args in preset.args.items() if name in known - named)
    return merged


def _over(config: PluginConfig, fields: Fields) -> PluginConfig:
    return msgspec.structs.replace(config, args={**(config.args or {}), **fields}) if fields else config
