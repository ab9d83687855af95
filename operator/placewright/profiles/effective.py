"""Describes a resolved profile for people: every plugin, its extension points, weight and arguments, and the origin of each."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
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
