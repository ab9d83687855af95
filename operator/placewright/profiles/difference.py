"""Compares two profiles in effect, and finds the earlier rejections that a change may overturn.

Two spellings with the same effect are no difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final, NamedTuple

from placewright.api.profile import ProfileSpec
from placewright.framework.runtime.resolvedprofile import ExtensionPoint, Origin, ResolvedProfile
from placewright.profiles.effective import (
    EffectivePlugin,
    ValueWithOrigin,
    effective_plugins,
    extender_fields,
    settings_of,
    whole,
)

#: A plugin whose weight becomes 0 leaves these points; the difference of its weight says that already.
_WEIGHED: Final = frozenset({ExtensionPoint.PRE_SCORE, ExtensionPoint.SCORE})
#: Points at which plugins reject pods that then wait for an event. PreEnqueue is missing: it is asked again after every change.
_REJECTING: Final = (
    ExtensionPoint.PRE_FILTER,
    ExtensionPoint.FILTER,
    ExtensionPoint.RESERVE,
    ExtensionPoint.PERMIT,
    ExtensionPoint.PRE_BIND,
)


class Difference(NamedTuple):
    """One difference; a side is None if it does not have the thing."""

    what: str
    before: Any
    after: Any


def differences(before: ResolvedProfile, after: ResolvedProfile) -> tuple[Difference, ...]:
    """List all differences: settings of the whole profile, then plugins, weights, arguments, order and extenders."""
    old = {plugin.name: plugin for plugin in effective_plugins(before)}
    new = {plugin.name: plugin for plugin in effective_plugins(after)}
    return (
        *_between(_settings(before), _settings(after)),
        *_points(old, new),
        *_weights(old, new),
        *_arguments(old, new),
        *_orders(before, after),
        *_extenders(before, after),
    )


def _between(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Difference]:
    for key in dict.fromkeys([*before, *after]):
        old, new = before.get(key), after.get(key)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            yield from (each._replace(what=f"{key}.{each.what}") for each in _between(old, new))
        elif old != new:
            yield Difference(key, old, new)


def _settings(profile: ResolvedProfile) -> Mapping[str, Any]:
    shadow = profile.shadows is not None
    return {
        "schedulerName": None if shadow else profile.scheduler_name,
        "shadows": profile.shadows,
        "shadow.budgetPercent": whole(100 * profile.shadow_budget) if shadow else None,
        **_by_field(profile.settings),
    }


def changed_settings(spec: ProfileSpec) -> Iterator[Difference]:
    """Yield the settings that differ from those of a profile that says nothing: `Difference("backoff.maxSeconds", 10, 20)`."""
    return _between(_by_field(ProfileSpec()), _by_field(spec))


def _by_field(spec: ProfileSpec) -> Mapping[str, Any]:
    """Return settings by field. Both sides have the rules of preemption, so that each is a difference of its own."""
    return {"preemption": {}, **settings_of(spec)}


def _weights(old: Mapping[str, EffectivePlugin], new: Mapping[str, EffectivePlugin]) -> Iterator[Difference]:
    """Compare weights. A plugin that does not score has 0, because 0 is the way to write that."""
    for name in dict.fromkeys([*old, *new]):
        before, after = (stated.value if (stated := _weight(side.get(name))) else 0 for side in (old, new))
        if before != after:
            yield Difference(f"weights.{name}", before, after)


def _weight(plugin: EffectivePlugin | None) -> ValueWithOrigin | None:
    return None if plugin is None else plugin.weight


def _points(old: Mapping[str, EffectivePlugin], new: Mapping[str, EffectivePlugin]) -> Iterator[Difference]:
    for name in dict.fromkeys([*old, *new]):
        before, after = old.get(name), new.get(name)
        told_by_weight = _WEIGHED if (_weight(before) is None) != (_weight(after) is None) else frozenset[ExtensionPoint]()
        runs_at = [_runs_at(plugin, told_by_weight) for plugin in (before, after)]
        if runs_at[0] != runs_at[1]:
            yield Difference(f"plugins.{name}", *runs_at)


def _runs_at(plugin: EffectivePlugin | None, ignored: frozenset[ExtensionPoint]) -> str | None:
    return None if plugin is None else ", ".join(point for point in plugin.points if point not in ignored) or None


def _arguments(old: Mapping[str, EffectivePlugin], new: Mapping[str, EffectivePlugin]) -> Iterator[Difference]:
    """Compare arguments. If only one side has the plugin, compare arguments that are not its default."""
    for name in dict.fromkeys([*old, *new]):
        both = name in old and name in new
        before, after = (_values(plugins[name].args, everything=both) if name in plugins else {} for plugins in (old, new))
        yield from (each._replace(what=f"{name}.{each.what}") for each in _between(before, after))


def _values(args: Mapping[str, ValueWithOrigin], *, everything: bool) -> Mapping[str, Any]:
    return {field: stated.value for field, stated in args.items() if everything or stated.origin is not Origin.DEFAULT}


def _orders(before: ResolvedProfile, after: ResolvedProfile) -> Iterator[Difference]:
    """Find points at which the common plugins are asked in another order."""
    # Common ones only: a plugin that came or went is a difference of its own.
    for point in ExtensionPoint:
        common = set(before.at(point)) & set(after.at(point))
        old, new = ([name for name in profile.at(point) if name in common] for profile in (before, after))
        if old != new:
            yield Difference(f"order at {point}", ", ".join(old), ", ".join(new))


def _extenders(before: ResolvedProfile, after: ResolvedProfile) -> Iterator[Difference]:
    old, new = ({one.url_prefix: one for one in profile.extenders} for profile in (before, after))
    for url in dict.fromkeys([*old, *new]):
        fields = [extender_fields(side[url]) if url in side else None for side in (old, new)]
        yield from (each._replace(what=f"extender {each.what}") for each in _between({url: fields[0]}, {url: fields[1]}))
        # A changed key is told without either key, which `extender_fields` hides.
        if url in old and url in new and old[url].tls_config.key_data != new[url].tls_config.key_data:
            yield Difference(f"extender {url}.tlsConfig.keyData", "one key", "another")
    if [url for url in old if url in new] != [url for url in new if url in old]:
        yield Difference("order of extenders", ", ".join(old), ", ".join(new))


def reconsidered(before: ResolvedProfile, after: ResolvedProfile) -> AbstractSet[str] | None:
    """Find the plugins whose earlier rejections may not hold any more: switched off where they rejected, or with other arguments.

    Weights, backoff and added plugins change nothing for a pod that fits on no node.

    Returns:
        Names of plugins. None means all: other extenders, or another way of making room, may find a node for any pod.
    """
    preemption = (before.settings.preemption, after.settings.preemption)
    if before.extenders != after.extenders or _making_room(before) != _making_room(after) or preemption[0] != preemption[1]:
        return None
    enabled = ((point, name) for point in _REJECTING for name in before.at(point))
    return {name for point, name in enabled if name not in after.at(point) or before.args[name] != after.args[name]}


def _making_room(profile: ResolvedProfile) -> tuple[tuple[str, object], ...]:
    return tuple((name, profile.args[name]) for name in profile.at(ExtensionPoint.POST_FILTER))
