"""Describes a resolved profile for people: every plugin, its extension points, weight and arguments, and the origin of each.

The module also compares two profiles in effect, and finds the earlier rejections that a change may overturn.

Two spellings with the same effect are no difference.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Hashable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, NamedTuple, cast

import msgspec
from msgspec import inspect

from placewright.api.extenders import ExtenderSettings
from placewright.api.preemption import PreemptionSpec
from placewright.api.profile import SETTINGS, ProfileSpec
from placewright.framework.runtime.resolvedprofile import ExtensionPoint, Origin, ResolvedProfile
from placewright.profiles.strictdecode import type_of, wire_name

#: Replaces a secret in output.
HIDDEN: Final = "(hidden)"


class ValueWithOrigin(NamedTuple):
    """A value and its origin."""

    value: Any
    origin: Origin


@dataclass(frozen=True, slots=True)
class EffectivePlugin:
    """One plugin of a profile.

    Attributes:
        name: name of the plugin.
        points: its extension points, in the order in which a pod passes them, with the origin of each.
        weight: weight of its scores; None if it does not score.
        args: arguments by field, as documents spell it; a field without a value is left out.
    """

    name: str
    points: Mapping[ExtensionPoint, Origin]
    weight: ValueWithOrigin | None
    args: Mapping[str, ValueWithOrigin]


def effective_plugins(profile: ResolvedProfile) -> tuple[EffectivePlugin, ...]:
    """List the plugins of a profile.

    Returns:
        The plugins, in the order in which a pod first meets them.
    """
    return tuple(_plugin(profile, name) for name in profile.plugin_names)


def _plugin(profile: ResolvedProfile, name: str) -> EffectivePlugin:
    origins = profile.origins
    points = {point: origins.plugins.get(point, {}).get(name, Origin.DEFAULT) for point in ExtensionPoint if name in profile.at(point)}
    weight = profile.weights.get(name)
    said = origins.args.get(name, {})
    return EffectivePlugin(
        name,
        points,
        None if weight is None else ValueWithOrigin(weight, origins.weights.get(name, Origin.DEFAULT)),
        {field: ValueWithOrigin(value, said.get(field, Origin.DEFAULT)) for field, value in fields_of(profile.args[name]).items()},
    )


def as_document(profile: ResolvedProfile) -> dict[str, Any]:
    """Write the whole profile as plain data, for `-o yaml` and other programs."""
    return {
        "name": profile.name,
        "schedulerName": profile.scheduler_name,
        "generation": profile.generation,
        **({} if profile.shadows is None else {"shadows": profile.shadows, "budgetPercent": whole(100 * profile.shadow_budget)}),
        "preset": profile.preset,
        **settings_of(profile.settings),
        "plugins": [_document_of(plugin) for plugin in effective_plugins(profile)],
        "points": {str(point): list(profile.at(point)) for point in ExtensionPoint if profile.at(point)},
        "extenders": [extender_fields(extender) for extender in profile.extenders],
    }


def settings_of(spec: ProfileSpec) -> dict[str, Any]:
    """Return the settings in effect as a profile writes them, by field as documents spell it; 100 percent where all nodes are examined.

    Settings without a value are left out.

    Example: `{"paused": False, "percentageOfNodesToScore": 100, "backoff": {"initialSeconds": 1, "maxSeconds": 10}}`.
    """
    spelled = dict(zip(spec.__struct_fields__, spec.__struct_encode_fields__, strict=True))
    settings = {spelled[name]: _setting(getattr(spec, name)) for name in SETTINGS}
    settings["percentageOfNodesToScore"] = spec.percentage_of_nodes_to_score or 100
    return {name: value for name, value in settings.items() if value is not None}


def _setting(value: object) -> Any:
    """Write a setting as plain data; rules of preemption without the rules that change nothing."""
    if isinstance(value, PreemptionSpec):
        usual = plain(PreemptionSpec())
        return {name: each for name, each in plain(value).items() if each != usual.get(name)}
    return plain(value)


def _document_of(plugin: EffectivePlugin) -> dict[str, Any]:
    document: dict[str, Any] = {"name": plugin.name, "points": {str(point): str(origin) for point, origin in plugin.points.items()}}
    if plugin.weight is not None:
        document["weight"] = _with_origin(plugin.weight)
    if plugin.args:
        document["args"] = {field: _with_origin(stated) for field, stated in plugin.args.items()}
    return document


def _with_origin(stated: ValueWithOrigin) -> dict[str, Any]:
    return {"value": stated.value, "from": str(stated.origin)}


def extender_fields(extender: ExtenderSettings) -> dict[str, Any]:
    """Write an extender as a document does, without its private key and without empty fields."""
    hidden = {"keyData": HIDDEN} if extender.tls_config.key_data else {}
    fields = plain(extender)
    tls = {name: value for name, value in {**fields["tlsConfig"], **hidden}.items() if value}
    stated = {**fields, "tlsConfig": tls, "field": ""}
    return {name: value for name, value in stated.items() if value not in ("", {}, [], False, 0)}


# --- to plain data -----------------------------------------------------------------------------------------------------------------


def fields_of(args: object) -> dict[str, Any]:
    """Write a plugin's arguments by field, as documents spell them.

    Returns:
        Plain data; fields without a value are left out.
    """
    value = plain(args)
    return {name: each for name, each in value.items() if each is not None} if isinstance(value, dict) else {}


def plain(value: object) -> Any:
    """Convert a value to JSON-able data; a value without a counterpart in JSON becomes text."""
    if isinstance(value, enum.Enum):
        value = value.value
    if isinstance(value, msgspec.Struct) or (dataclasses.is_dataclass(value) and not isinstance(value, type)):
        return dict(_fields(value))
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        items = [plain(each) for each in value]
        return items if isinstance(value, (list, tuple)) else sorted(items, key=str)
    return _scalar(value)


def _scalar(value: object) -> Any:
    if isinstance(value, float):
        return whole(value)
    return value if value is None or isinstance(value, (bool, int)) else str(value)


def _fields(value: object) -> Iterator[tuple[str, Any]]:
    kind = type_of(cast(Hashable, type(value)))
    assert isinstance(kind, (inspect.StructType, inspect.DataclassType))
    for field in kind.fields:
        if (item := plain(getattr(value, field.name))) is not None:
            yield wire_name(kind, field), item


def whole(number: float) -> float | int:
    """Write a whole number without a fraction, as people do: 5 for 5.0.

    Returns:
        An int if the number is whole.
    """
    return int(number) if number == int(number) else number


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
    old, new = ({plugin.name: plugin for plugin in effective_plugins(profile)} for profile in (before, after))
    settings = between(_settings(before), _settings(after))
    plugins = (between(facts(old, new), facts(new, old)) for facts in (_points, _weights, _arguments))
    profiles = (between(facts(before, after), facts(after, before)) for facts in (_orders, _extenders))
    return (*settings, *chain.from_iterable(plugins), *chain.from_iterable(profiles), *_keys(before, after))


def between(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Difference]:
    """Yield the values that differ, each with its path. Of two mappings their own values are compared."""
    for key in dict.fromkeys([*before, *after]):
        old, new = before.get(key), after.get(key)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            yield from (each._replace(what=f"{key}.{each.what}") for each in between(old, new))
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
    return between(_by_field(ProfileSpec()), _by_field(spec))


def _by_field(spec: ProfileSpec) -> Mapping[str, Any]:
    """Return settings by field. Both sides have the rules of preemption, so that each is a difference of its own."""
    return {"preemption": {}, **settings_of(spec)}


# Each function returns the facts of one side. Equal facts of both sides are no difference.

_PluginFacts = Mapping[str, EffectivePlugin]


def _points(own: _PluginFacts, other: _PluginFacts) -> Mapping[str, str | None]:
    return {f"plugins.{name}": _runs_at(plugin, other.get(name)) for name, plugin in own.items()}


def _runs_at(plugin: EffectivePlugin, other: EffectivePlugin | None) -> str | None:
    told_by_weight = (plugin.weight is None) != (other is None or other.weight is None)
    return ", ".join(point for point in plugin.points if not (told_by_weight and point in _WEIGHED)) or None


def _weights(own: _PluginFacts, other: _PluginFacts) -> Mapping[str, int]:
    """Return the weights. A plugin that does not score has 0, because 0 is the way to write that."""
    weights = {name: own[name].weight if name in own else None for name in (*own, *other)}
    return {f"weights.{name}": 0 if weight is None else weight.value for name, weight in weights.items()}


def _arguments(own: _PluginFacts, other: _PluginFacts) -> Mapping[str, Mapping[str, Any]]:
    """Return the arguments. If only one side has the plugin, return arguments that are not its default."""
    args = {name: own[name].args.items() if name in own else () for name in (*own, *other)}
    return {
        name: {field: stated.value for field, stated in fields if name in other or stated.origin is not Origin.DEFAULT}
        for name, fields in args.items()
    }


def _orders(own: ResolvedProfile, other: ResolvedProfile) -> Mapping[str, str]:
    """Return the order of the common plugins at each point: a plugin that came or went is a difference of its own."""
    return {f"order at {point}": ", ".join(name for name in own.at(point) if name in other.at(point)) for point in ExtensionPoint}


def _extenders(own: ResolvedProfile, other: ResolvedProfile) -> Mapping[str, Any]:
    urls, others = ([one.url_prefix for one in profile.extenders] for profile in (own, other))
    same_order = [url for url in urls if url in others] == [url for url in others if url in urls]
    facts: dict[str, Any] = {f"extender {one.url_prefix}": extender_fields(one) for one in own.extenders}
    return facts if same_order else {**facts, "order of extenders": ", ".join(urls)}


def _keys(before: ResolvedProfile, after: ResolvedProfile) -> Iterator[Difference]:
    """Find changed keys, and tell neither key, which `extender_fields` hides."""
    old = {one.url_prefix: one.tls_config.key_data for one in before.extenders}
    for one in after.extenders:
        if one.tls_config.key_data != old.get(one.url_prefix, one.tls_config.key_data):
            yield Difference(f"extender {one.url_prefix}.tlsConfig.keyData", "one key", "another")


def reconsidered(before: ResolvedProfile, after: ResolvedProfile) -> AbstractSet[str] | None:
    """Find the plugins whose earlier rejections may not hold any more: switched off where they rejected, or with other arguments.

    Weights, backoff and added plugins change nothing for a pod that fits on no node.

    Returns:
        Names of plugins. None means all: other rules or extenders, or another way of making room, may find a node for any pod.
    """
    preemption = (before.settings.preemption, after.settings.preemption)
    if before.rules != after.rules or before.extenders != after.extenders:
        return None
    if _making_room(before) != _making_room(after) or preemption[0] != preemption[1]:
        return None
    enabled = ((point, name) for point in _REJECTING for name in before.at(point))
    return {name for point, name in enabled if name not in after.at(point) or before.args[name] != after.args[name]}


def _making_room(profile: ResolvedProfile) -> tuple[tuple[str, object], ...]:
    return tuple((name, profile.args[name]) for name in profile.at(ExtensionPoint.POST_FILTER))
