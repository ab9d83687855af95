"""Turns a SchedulingProfile into a `ResolvedProfile`, with every question answered, or into the list of its problems.

Pure: the same profile, catalogue and version give the same result.
"""

from __future__ import annotations

from itertools import chain
from types import MappingProxyType

from placewright.api.compatibility import BASELINE, rules_in_force
from placewright.api.profile import DEFAULT_SCHEDULER_NAME, ProfileSpec, SchedulingProfile, ShadowSettings
from placewright.framework.interface import Plugin, PostFilterPlugin
from placewright.framework.runtime.resolvedprofile import ExtensionPoint, ResolvedProfile
from placewright.profiles.arguments import resolve_args
from placewright.profiles.check import (
    check_not_itself,
    check_resolved,
    check_size,
    check_spec,
    leave_to_extenders,
    resolve_extenders,
)
from placewright.profiles.defaults import Catalogue
from placewright.profiles.merge import expand, merge_defaults, origins_of, score_weights
from placewright.profiles.presets import DEFAULT_PRESET, check_preset, find_preset, preset_weights, with_preset
from placewright.profiles.problem import MOST_PROBLEMS, ProfileError, first_problems


def resolve(profile: SchedulingProfile, catalogue: Catalogue, kubernetes: int = BASELINE) -> ResolvedProfile:
    """Check a profile, merge it with the defaults, and convert the arguments of its plugins.

        resolve(default_profile(), catalogue)  # kube-scheduler's default profile, as far as the catalogue goes

    Args:
        profile: profile as its author wrote it.
        catalogue: the plugins that exist here.
        kubernetes: minor version of the API server, for a profile that follows it.

    Raises:
        ProfileError: it has problems; the first hundred are listed.
    """
    spec = profile.spec
    # First of all: every later check reads the arguments.
    if too_large := [*check_size(spec)]:
        raise ProfileError(too_large)
    found = chain(check_spec(spec, catalogue), check_not_itself(profile.metadata.name, spec), check_preset(spec.preset))
    problems = [*first_problems(found)]
    if len(problems) == MOST_PROBLEMS:
        raise ProfileError(problems)
    points, weights = _points_and_weights(spec, catalogue)
    if not problems:
        # A merged view of wrong names would report their consequences as further errors.
        problems += check_resolved(points, weights, spec.weights or {})
    names = {name for plugins in points.values() for name in plugins}
    configs = with_preset(spec.plugin_config or (), find_preset(spec.preset), catalogue)
    # Even after other problems, so that a person sees all of them at once.
    args = resolve_args(configs, names, catalogue, problems)
    if problems:
        raise ProfileError(problems)
    extenders = resolve_extenders(spec.extenders)
    leave_to_extenders(args, extenders)
    return ResolvedProfile(
        scheduler_name=spec.scheduler_name or DEFAULT_SCHEDULER_NAME,  # a shadow need not have one
        name=profile.metadata.name,
        uid=profile.metadata.uid,
        generation=profile.metadata.generation,
        points=MappingProxyType(points),
        weights=MappingProxyType(weights),
        args=MappingProxyType(args),
        settings=spec.settings,
        rules=rules_in_force(spec.compatibility, spec.feature_gates, kubernetes),
        extenders=extenders,
        shadows=spec.shadows if spec.is_shadow else None,
        shadow_budget=(spec.shadow or ShadowSettings()).budget_percent / 100,
        preset=spec.preset or DEFAULT_PRESET,
        preempting=next((name for name in points[ExtensionPoint.POST_FILTER] if _preempts(catalogue[name])), ""),
        unused_args=tuple(each.name for each in spec.plugin_config or () if each.name in catalogue and each.name not in names),
        origins=origins_of(spec, points, weights, args),
    )


def _preempts(plugin: type[Plugin]) -> bool:
    return issubclass(plugin, PostFilterPlugin) and plugin.preempts


def _points_and_weights(spec: ProfileSpec, catalogue: Catalogue) -> tuple[dict[ExtensionPoint, tuple[str, ...]], dict[str, int]]:
    """Return the run order at each point, and the weight of each plugin that scores. A weight of 0 only stops a plugin from scoring."""
    multi_point = merge_defaults(spec.plugins.multi_point, catalogue, find_preset(spec.preset).adds)
    points = expand(spec.plugins, multi_point, catalogue)
    overrides = preset_weights(find_preset(spec.preset), spec.plugins) | (spec.weights or {})
    # "Do not rank by it" leaves the filter alone: it is another wish than "do not require it" (decision 0001).
    off = {name for name, weight in overrides.items() if weight == 0}
    for point in (ExtensionPoint.PRE_SCORE, ExtensionPoint.SCORE):
        points[point] = tuple(name for name in points[point] if name not in off)
    stated = score_weights(spec.plugins, multi_point, catalogue)
    weights = {name: overrides.get(name, stated[name]) for name in points[ExtensionPoint.SCORE] if name in stated}
    return points, weights
