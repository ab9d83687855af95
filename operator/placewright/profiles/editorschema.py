"""The JSON Schema of a SchedulingProfile for editors: with the names of plugins to choose from, and each plugin's own arguments.

`python -m placewright.profiles.editorschema > crds/schedulingprofile.schema.json` prints it for our own plugins;
`placewright schema SchedulingProfile` for all installed ones. A name of an unknown plugin is accepted: the operator may have it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from typing import Any, Final

from placewright.api.profilelimits import MAX_WEIGHT
from placewright.framework.interface import Plugin
from placewright.framework.runtime.resolvedprofile import ExtensionPoint
from placewright.plugins.catalog import in_tree
from placewright.profiles.arguments import argument_schema
from placewright.profiles.defaults import Catalogue
from placewright.profiles.merge import ALL, MULTI_POINT
from placewright.profiles.schema import json_schema

Schema = dict[str, Any]

_NAMES: Final = {MULTI_POINT: "plugins", **{str(point): f"{point}Plugins" for point in ExtensionPoint}}


def editor_schema(catalogue: Catalogue) -> Schema:
    """Build the JSON Schema (2020-12) of a manifest, with the names and arguments of plugins."""
    schema = json_schema()
    spec = schema["properties"]["spec"]["properties"]
    for point, plugins in spec["plugins"]["properties"].items():
        for name in ("enabled", "disabled"):
            _suggest(plugins["properties"][name]["items"]["properties"]["name"], _NAMES[point])
    _suggest(spec["pluginConfig"]["items"]["properties"]["name"], _NAMES[MULTI_POINT])
    spec["pluginConfig"]["items"]["allOf"] = [_arguments(catalogue[name]) for name in catalogue]
    spec["weights"]["properties"] = {
        name: _weight(catalogue[name]) for name in catalogue if ExtensionPoint.SCORE.implemented_by(catalogue[name])
    }
    return {**schema, "$defs": dict(_definitions(catalogue))}


def _suggest(name: Schema, definition: str) -> None:
    """Offer the known names, and accept any."""
    name["anyOf"] = [{"$ref": f"#/$defs/{definition}"}, {"type": "string"}]


def _definitions(catalogue: Catalogue) -> Iterator[tuple[str, Schema]]:
    yield _NAMES[MULTI_POINT], _enum(catalogue)
    for point in ExtensionPoint:
        yield _NAMES[point], _enum(name for name in catalogue if point.implemented_by(catalogue[name]))


def _enum(names: Iterable[str]) -> Schema:
    return {"enum": [*names, ALL]}


def _arguments(plugin: type[Plugin]) -> Schema:
    arguments = {key: value for key, value in argument_schema(plugin).items() if key not in ("$schema", "title")}
    named = {"properties": {"name": {"const": plugin.name}}, "required": ["name"]}
    return {"if": named, "then": {"properties": {"args": arguments}}}


def _weight(plugin: type[Plugin]) -> Schema:
    text = f"{first_sentence(plugin)} Weight {plugin.default_weight} by default; 0: off."
    return {"description": text, "type": "integer", "minimum": 0, "maximum": MAX_WEIGHT}


def first_sentence(plugin: type[Plugin]) -> str:
    """Read the first line of a plugin's docstring.

    Returns:
        The plugin's work, in a line.
    """
    return (plugin.__doc__ or "").strip().partition("\n")[0]


if __name__ == "__main__":
    sys.stdout.write(json.dumps(editor_schema(in_tree()), indent=1) + "\n")
