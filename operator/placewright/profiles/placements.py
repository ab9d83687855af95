"""The two extension points of a KubeSchedulerConfiguration that place groups: `placementGenerate` and `placementScore`.

kube-scheduler has them since 1.36, behind TopologyAwareWorkloadScheduling, and writes them into every file that it writes. Here
GangScheduling keeps a group's topology, and the members' own scores choose among the domains that hold the group. So kube-scheduler's
default entries are left out, with a note. Any other entry would place groups differently here, and is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec

from placewright.api.bad_input import in_json
from placewright.api.profile import PluginRef, Plugins, PluginSet
from placewright.profiles.problem import Problem, ProfileError, did_you_mean

GENERATOR: Final = "TopologyPlacementGenerator"
PODS_COUNT: Final = "PodGroupPodsCount"
#: The two plugins that have no other point.
_GROUPS_ALONE: Final = (GENERATOR, PODS_COUNT)
_FIT: Final = "NodeResourcesFit"
_ALL: Final = "*"
_INSTEAD: Final = {
    GENERATOR: "GangScheduling keeps the topology of a PodGroup, always",
    PODS_COUNT: "of the domains that hold a whole group, the one with the highest sum of its members' scores is taken",
    _FIT: "of the domains that hold a whole group, the one with the highest sum of its members' scores is taken",
}
#: No weight, or kube-scheduler's default one.
_DEFAULT_WEIGHTS: Final = (None, 0, 1)

#: Told of an entry that is left out: the path of its field, and the plugin or rule that does its work here.
Say = Callable[[str, str], None]


class ConfigPlugins(Plugins, frozen=True):
    """Plugin sets as kube-scheduler's files have them."""

    placement_generate: PluginSet = PluginSet()
    placement_score: PluginSet = PluginSet()


def without_placements(plugins: Plugins, path: str, say: Say = lambda _path, _text: None) -> Plugins:
    """Remove the plugins that place groups.

    Raises:
        ProfileError: without the removed entries groups would be placed differently.
    """
    if isinstance(plugins, ConfigPlugins):
        problems = [*_wrong_generators(plugins, path), *_wrong_scores(plugins, path)]
        if problems:
            raise ProfileError(problems)
        _say(plugins.placement_generate, f"{path}.placementGenerate", say)
        _say(plugins.placement_score, f"{path}.placementScore", say)
    kept = {name: getattr(plugins, name) for name in Plugins.__struct_fields__}
    every = plugins.multi_point
    _say(every, f"{path}.multiPoint", say, _GROUPS_ALONE)
    kept["multi_point"] = msgspec.structs.replace(every, enabled=_others(every.enabled), disabled=_others(every.disabled))
    return Plugins(**kept)


def _wrong_generators(plugins: ConfigPlugins, path: str) -> Iterator[Problem]:
    own = f"{path}.placementGenerate"
    for index, ref in enumerate(plugins.placement_generate.enabled or ()):
        if ref.name != GENERATOR:
            allowed = f"{GENERATOR}{did_you_mean(ref.name, (GENERATOR,))}: the proposals of another generator are unknown here"
            yield Problem(f"{own}.enabled[{index}].name", in_json(ref.name), allowed)
    enabled = any(ref.name == GENERATOR for ref in plugins.placement_generate.enabled or ())
    for where, chosen, names in (
        (own, plugins.placement_generate, (GENERATOR, _ALL)),
        (f"{path}.multiPoint", plugins.multi_point, (GENERATOR,)),
    ):
        for index, ref in enumerate(chosen.disabled or ()):
            enabled_again = enabled or any(ref.name == GENERATOR for ref in chosen.enabled or ())
            if ref.name in names and not enabled_again:
                allowed = f"nothing: {_INSTEAD[GENERATOR]}; where none is wanted, leave it out of the PodGroups"
                yield Problem(f"{where}.disabled[{index}].name", in_json(ref.name), allowed)


def _wrong_scores(plugins: ConfigPlugins, path: str) -> Iterator[Problem]:
    own = f"{path}.placementScore.enabled"
    for index, ref in enumerate(plugins.placement_score.enabled or ()):
        if ref.name not in (PODS_COUNT, _FIT):
            yield Problem(f"{own}[{index}].name", in_json(ref.name), f"nothing: {_INSTEAD[PODS_COUNT]}; leave the plugin out")
        else:
            yield from _wrong_weight(ref, f"{own}[{index}]")
    for index, ref in enumerate(plugins.multi_point.enabled or ()):
        if ref.name == PODS_COUNT:
            yield from _wrong_weight(ref, f"{path}.multiPoint.enabled[{index}]")


def _wrong_weight(ref: PluginRef, where: str) -> Iterator[Problem]:
    if ref.weight not in _DEFAULT_WEIGHTS:
        yield Problem(f"{where}.weight", str(ref.weight), f"1, the default: {_INSTEAD[ref.name]}; leave the weight out")


def _say(chosen: PluginSet, path: str, say: Say, only: Iterable[str] = ()) -> None:
    for name in dict.fromkeys(ref.name for ref in chosen.enabled or () if not only or ref.name in only):
        say(f"{path}.enabled", f"{name}: {_INSTEAD[name]}")
    for name in dict.fromkeys(ref.name for ref in chosen.disabled or () if not only or ref.name in only):
        say(f"{path}.disabled", f"{name}: there is no such plugin here to switch off")


def _others(refs: Iterable[PluginRef] | None) -> list[PluginRef] | None:
    return None if refs is None else [ref for ref in refs if ref.name not in _GROUPS_ALONE]
