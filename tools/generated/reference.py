"""Writes docs/reference.md: every field, rule, preset, plugin and argument, from the code that checks them.

`python -m tools.generated.reference > docs/reference.md`
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from placewright.api.profile import GROUP, KIND, PLURAL, VERSION
from placewright.framework.interface import Plugin
from placewright.framework.runtime.resolvedprofile import ExtensionPoint
from placewright.plugins.catalog import in_tree
from placewright.profiles.arguments import argument_schema, has_arguments
from placewright.profiles.defaults import DEFAULT_PLUGINS, Catalogue
from placewright.profiles.editorschema import first_sentence
from placewright.profiles.presets import PRESETS
from placewright.profiles.profilestate import Reason
from placewright.profiles.schema import openapi_schema

Schema = Mapping[str, Any]

_INTRODUCTION: Final = f"""\
<!-- Made by `make generate`; do not edit. -->
# Reference

For authors of profiles.

A `{KIND}` (`{GROUP}/{VERSION}`, cluster-scoped, `kubectl get schedprof`) says how the pods of one `schedulerName` are placed. This
page is made from the code that checks them, as are the definition (`crds/{PLURAL}.yaml`) and the JSON Schema for editors
(`crds/{KIND.lower()}.schema.json`; with the plugins that are installed: `placewright schema {KIND}`). `placewright validate FILE`
checks files without a cluster.

Editors with the YAML language server take the schema from a file's first line:

```yaml
# yaml-language-server: $schema=../crds/{KIND.lower()}.schema.json
```
"""
_POINTS: Final = "spec.plugins.*"
_RULES: Final = "x-kubernetes-validations"


def reference(catalogue: Catalogue) -> str:
    """Write the page.

    Args:
        catalogue: the plugins to describe.

    Returns:
        Markdown.
    """
    schema = openapi_schema()
    spec, status = schema["properties"]["spec"], schema["properties"]["status"]
    parts = [
        _INTRODUCTION,
        "## spec\n\n" + _fields(_spec_fields(spec)),
        f"### Extension points\n\nEach of them, and `multiPoint`, has `enabled` and `disabled`, above as `{_POINTS}`.\n\n" + _points(spec),
        "### Rules across fields\n\nHeld by the API server from Kubernetes 1.25 on, and by the operator everywhere.\n\n" + _rules(spec),
        "## Presets\n\n" + _presets(),
        "## status\n\n" + _fields(_walk(status, "status")),
        "Reasons of the condition `Ready`: " + ", ".join(f"`{reason}`" for reason in Reason) + ".\n",
        "## Plugins\n\nThe weight is that of a plugin that scores, where the profile says nothing.\n\n" + _plugins(catalogue),
        "## Arguments of plugins\n\nIn `spec.pluginConfig`, as `args`. Plugins that are not here have none.\n",
        *(_arguments(catalogue[name]) for name in catalogue if has_arguments(catalogue[name])),
        "Next: [profiles-command](profiles-command.md), [plugins](plugins.md).\n",
    ]
    return "\n".join(parts)


# --- fields ------------------------------------------------------------------------------------------------------------------


def _spec_fields(spec: Schema) -> Iterator[tuple[str, Schema]]:
    """All fields. The fields of one extension point stand for those of all."""
    for path, schema in _walk(spec, "spec"):
        if path.startswith("spec.plugins."):
            if path.startswith("spec.plugins.filter."):
                yield path.replace("spec.plugins.filter", _POINTS), schema
        else:
            yield path, schema


def _walk(schema: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    """Every field inside a schema that people write, with its path."""
    for name, part in schema.get("properties", {}).items():
        where = f"{path}.{name}" if path else name
        yield where, part
        yield from _walk(part, where)
        items = _present(part.get("items"))
        if items is not None:
            yield from _walk(items, f"{where}[]")


def _present(schema: Any) -> Schema | None:
    return schema if isinstance(schema, Mapping) else None


def _fields(fields: Iterable[tuple[str, Schema]]) -> str:
    rows = ((f"`{path}`", _type(schema), _default(schema), _allowed(schema), schema.get("description", "")) for path, schema in fields)
    return _table(("field", "type", "default", "allowed", "meaning"), rows)


def _type(schema: Schema) -> str:
    kinds = schema.get("type", "string" if "enum" in schema else "any")
    kind = " or ".join(each for each in kinds if each != "null") if isinstance(kinds, list) else str(kinds)
    items, others = _present(schema.get("items")), _present(schema.get("additionalProperties"))
    if kind == "array" and items is not None:
        return f"list of {_type(items)}"
    if kind == "object" and others is not None:
        return f"map to {_type(others)}"
    return kind


def _default(schema: Schema) -> str:
    return f"`{json.dumps(schema['default'])}`" if schema.get("default", {}) not in ({}, []) else ""


def _allowed(schema: Schema) -> str:
    others = _present(schema.get("additionalProperties")) or {}
    words = [_range(schema) or _range(others)]
    if "enum" in schema:
        words.append(", ".join(f"`{value}`" for value in schema["enum"] if value is not None))
    if "pattern" in schema:
        words.append(f"matches `{schema['pattern']}`")
    for limit, of_what in (("maxLength", "characters"), ("maxItems", "items"), ("maxProperties", "entries")):
        if limit in schema:
            words.append(f"at most {schema[limit]} {of_what}")
    return "; ".join(word for word in words if word)


def _range(schema: Schema) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is None or high is None:
        return f"at least {low}" if low is not None else f"at most {high}" if high is not None else ""
    return f"{low} to {high}"


# --- the rest ----------------------------------------------------------------------------------------------------------------


def _points(spec: Schema) -> str:
    points = spec["properties"]["plugins"]["properties"]
    return _table(("extension point", "what runs there"), ((f"`{name}`", part["description"]) for name, part in points.items()))


def _rules(spec: Schema) -> str:
    places = [("spec", spec), *_walk(spec, "spec")]
    found = [(path, rule) for path, schema in places for rule in schema.get(_RULES, ())]
    items = ((f"{path}[]", _present(schema.get("items"))) for path, schema in places)
    found += [(path, rule) for path, schema in items if schema is not None for rule in schema.get(_RULES, ())]
    return _table(("where", "what is said"), ((f"`{path}`", rule["message"]) for path, rule in found))


def _presets() -> str:
    rows = ((f"`{name}`", preset.summary, _weights(preset.weights)) for name, preset in PRESETS.items())
    return _table(("`spec.preset`", "what for", "weights that it changes"), rows)


def _weights(weights: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {weight}" for name, weight in weights.items())


def _plugins(catalogue: Catalogue) -> str:
    rows = ((name, first_sentence(plugin), _where(plugin), _weight(plugin), _by_default(name)) for name, plugin in catalogue.items())
    return _table(("plugin", "does", "extension points", "weight", "by default"), rows)


def _where(plugin: type[Plugin]) -> str:
    return ", ".join(f"`{point}`" for point in ExtensionPoint if point.implemented_by(plugin))


def _weight(plugin: type[Plugin]) -> str:
    return str(plugin.default_weight) if ExtensionPoint.SCORE.implemented_by(plugin) else ""


def _by_default(name: str) -> str:
    return "yes" if name in DEFAULT_PLUGINS else ""


def _arguments(plugin: type[Plugin]) -> str:
    schema = argument_schema(plugin)
    fields = [(path, part) for path, part in _walk(schema, "") if path not in ("apiVersion", "kind")]
    described = schema.get("description", "")
    return f"### {plugin.name}\n\n" + (f"{described}\n\n" if described else "") + _fields(fields)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Format a Markdown table, without empty columns."""
    cells = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
    kept = [at for at in range(len(head)) if any(row[at] for row in cells)]
    lines = [[head[at] for at in kept], ["---"] * len(kept), *([row[at] for at in kept] for row in cells)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    sys.stdout.write(reference(in_tree()))
