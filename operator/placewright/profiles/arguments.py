"""Plugin arguments: from `pluginConfig` to an instance of each plugin's `Args`, checked."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from placewright.api.bad_input import in_json
from placewright.api.profile import PluginConfig
from placewright.framework.errors import raised
from placewright.framework.interface import Plugin
from placewright.profiles.argumentschema import broken_constraints
from placewright.profiles.check import known_plugin
from placewright.profiles.defaults import DEFAULT_PLUGINS, Catalogue
from placewright.profiles.problem import Problem, ProfileError
from placewright.profiles.strict import decode_strict

_PATH = "spec.pluginConfig"


def resolve_args(
    configs: Iterable[PluginConfig], names: Collection[str], catalogue: Catalogue, problems: list[Problem]
) -> dict[str, object]:
    """Arguments of every plugin in `names`, its defaults where the profile says nothing; what is wrong is added to `problems`.

    Arguments of plugins that the profile does not run are checked too: they are one `enabled` away from being used.
    """
    given: dict[str, object] = {}
    for index, config in enumerate(configs):
        path = f"{_PATH}[{index}]"
        if config.name in given:
            problems.append(Problem(f"{path}.name", in_json(config.name), "one entry for each plugin"))
        elif config.name in catalogue:
            given[config.name] = _args_of(catalogue[config.name], config.args or {}, f"{path}.args", problems)
        elif config.name not in DEFAULT_PLUGINS:
            problems.append(Problem(f"{path}.name", in_json(config.name), known_plugin(config.name, catalogue)))
    return {
        name: given[name] if name in given else _defaults_of(catalogue[name], problems) for name in names if name in catalogue
    }


def _defaults_of(plugin: type[Plugin], problems: list[Problem]) -> object:
    try:
        return plugin.Args()
    except Exception as error:  # noqa: BLE001 - anybody's class, which may want to be told something
        problems.append(Problem(_PATH, f"no arguments for {plugin.name}", f"an entry that has them; without, {raised(error)}"))
        return None


def _args_of(plugin: type[Plugin], raw: Mapping[str, Any], path: str, problems: list[Problem]) -> object:
    """The plugin's arguments, or None when `problems` got a reason."""
    try:
        return read_args(plugin, raw)
    except ProfileError as error:
        problems.extend(problem.inside(path) for problem in error.problems)
    except Exception as error:  # noqa: BLE001 - anybody's class
        problems.append(Problem(path, in_json(dict(raw)), f"what plugin {plugin.name} takes; it raised {raised(error)}"))
    return None


def read_args(plugin: type[Plugin], raw: Mapping[str, Any]) -> object:
    """The plugin's arguments from `args` of a document; raise `ProfileError`, with paths inside `args`, when anything is wrong.

    What one field may be, the plugin's schema says too (`argument_schema`); rules across fields are the arguments' own `validate`.
    """
    fields, misnamed = _without_type_meta(plugin.name, raw)
    if misnamed:
        raise ProfileError([misnamed])
    try:
        args: object = decode_strict(fields, plugin.Args)
        wrong = {problem.path: problem for problem in broken_constraints(args)}
        for triple in _validate(args):
            wrong.setdefault(triple[0], Problem(*triple))
    except ValueError as error:
        wrong = {"": Problem("", in_json(dict(fields)), f"something else: {error}")}
    if wrong:
        raise ProfileError(wrong.values())
    return args


def _without_type_meta(name: str, raw: Mapping[str, Any]) -> tuple[dict[str, Any], Problem | None]:
    """`args` may carry the apiVersion and kind that kube-scheduler's files have; the kind must then be this plugin's."""
    fields = {key: value for key, value in raw.items() if key not in ("apiVersion", "kind")}
    kind = raw.get("kind")
    wrong = None if kind in (None, f"{name}Args") else Problem("kind", in_json(kind), f"{name}Args")
    return fields, wrong


def _validate(args: object) -> Iterable[tuple[str, str, str]]:
    """The problems that the plugin's own check finds; a plugin need not have one."""
    validate = getattr(args, "validate", None)
    return validate() if validate is not None else ()
