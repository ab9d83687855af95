"""Writes docs/reference.md: every field, rule, preset, plugin and argument, from the code that checks them.

`python -m tools.generated.reference > docs/reference.md`
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from placewright.api.compatibility import Rule
from placewright.api.profile import GROUP, KIND, VERSION
from placewright.framework.interface import Plugin
from placewright.framework.runtime.resolvedprofile import ExtensionPoint
from placewright.plugins.catalog import in_tree
from placewright.profiles.arguments import argument_schema, has_arguments
from placewright.profiles.defaults import DEFAULT_PLUGINS, Catalogue
from placewright.profiles.editorschema import first_sentence
from placewright.profiles.presets import PRESETS
from placewright.profiles.schema import openapi_schema

Schema = Mapping[str, Any]

_INTRODUCTION: Final = f"""\
<!-- Made by `make generate`; do not edit. -->
# Reference

For authors of profiles.

A `{KIND}` (`{GROUP}/{VERSION}`, cluster-scoped, `kubectl get schedprof`) says how the pods of one `schedulerName` are placed.
`placewright validate FILE` checks files without a cluster. Editors with the YAML language server complete fields, if a file begins with

```yaml
# yaml-language-server: $schema=../crds/{KIND.lower()}.schema.json
```

`placewright schema {KIND}` prints this schema with the plugins that are installed.
"""
_POINTS: Final = "spec.plugins.*"
#: Path of any label selector: their fields are listed once.
_SELECTOR: Final = "*"
_LABEL_SELECTOR: Final = "label selector"
#: The end of the description of each extension point, which the page says once.
_BESIDE_MULTI_POINT: Final = " What is named here runs here, besides what multiPoint brings; see multiPoint."
#: Fields of Kubernetes' own types, whose fields its API reference describes.
_OF_KUBERNETES: Final = ("requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution")
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
    selector = spec["properties"]["preemption"]["properties"]["protect"]
    parts = [
        _INTRODUCTION,
        "## spec\n\n" + _fields(_spec_fields(spec)),
        f"### Label selectors\n\nAbove as `{_LABEL_SELECTOR}`.\n\n" + _fields(_walk(selector, _SELECTOR)),
        f"### Extension points\n\nEach has `enabled` and `disabled`, above as `{_POINTS}`. What a point names runs there, besides what"
        " `multiPoint` brings.\n\n" + _points(spec),
        "### Rules across fields\n\nHeld by the API server from Kubernetes 1.25 on, and by the operator everywhere.\n\n" + _rules(spec),
        "### Rules by version\n\nThe rules that versions of kube-scheduler differ in, for `spec.compatibility` and `spec.featureGates`. All"
        " other rules are those of 1.36 at every version.\n\n" + _versions(),
        "## Presets\n\n" + _presets(),
        "## status\n\nReasons of the conditions: [messages](messages.md#conditions-of-profiles).\n\n" + _status(status),
        "## Plugins\n\nThe weight is that of a plugin that scores, where the profile says nothing.\n\n" + _plugins(catalogue),
        "## Arguments of plugins\n\nIn `spec.pluginConfig`, as `args`. Plugins that are not here have none.\n",
        *_all_arguments(catalogue),
        "Next: [profiles-command](profiles-command.md), [plugins](plugins.md), [messages](messages.md).\n",
    ]
    return "\n".join(parts)


# --- fields ------------------------------------------------------------------------------------------------------------------


def _spec_fields(spec: Schema) -> Iterator[tuple[str, Schema]]:
    """All fields. The fields of one extension point stand for those of all, and an enabled plugin for a disabled one."""
    for path, schema in _walk(spec, "spec"):
        if path.startswith("spec.plugins."):
            if path.startswith("spec.plugins.filter.") and ".disabled[]" not in path:
                yield path.replace("spec.plugins.filter", _POINTS), schema
        else:
            yield path, schema


def _walk(schema: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    """Every field inside a schema that people write, with its path."""
    for name, part in schema.get("properties", {}).items():
        where = f"{path}.{name}" if path else name
        if name in _OF_KUBERNETES:
            yield where, {**part, "description": "As in spec.affinity.nodeAffinity of a pod."}
            continue
        yield where, part
        if _is_selector(part):
            continue
        yield from _walk(part, where)
        items = _present(part.get("items"))
        if items is not None:
            yield from _walk(items, f"{where}[]")


def _is_selector(schema: Schema) -> bool:
    return set(schema.get("properties", ())) == {"matchLabels", "matchExpressions"}


def _present(schema: Any) -> Schema | None:
    return schema if isinstance(schema, Mapping) else None


def _versions() -> str:
    rows = ((f"`{rule}`", f"1.{rule.since}", rule.says, rule.source) for rule in Rule)
    return _table(("rule", "by default from", "meaning", "source"), rows)


def _fields(fields: Iterable[tuple[str, Schema]]) -> str:
    rows = ((f"`{path}`", _type(schema), _default(schema), _allowed(schema), schema.get("description", "")) for path, schema in fields)
    return _table(("field", "type", "default", "allowed", "meaning"), rows)


def _type(schema: Schema) -> str:
    if _is_selector(schema):
        return _LABEL_SELECTOR
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
    return _table(
        ("extension point", "what runs there"),
        ((f"`{name}`", part["description"].removesuffix(_BESIDE_MULTI_POINT)) for name, part in points.items()),
    )


def _rules(spec: Schema) -> str:
    places = [("spec", spec), *_walk(spec, "spec")]
    found = [(path, rule) for path, schema in places for rule in schema.get(_RULES, ())]
    items = ((f"{path}[]", _present(schema.get("items"))) for path, schema in places)
    found += [(path, rule) for path, schema in items if schema is not None for rule in schema.get(_RULES, ())]
    selector = spec["properties"]["preemption"]["properties"]["protect"]["properties"]["matchExpressions"]["items"]
    found += [(f"{_SELECTOR}.matchExpressions[]", rule) for rule in selector.get(_RULES, ())]
    return _table(("where", "what is said"), ((f"`{path}`", rule["message"]) for path, rule in found))


def _status(status: Schema) -> str:
    """Write the fields of the status. No person writes them, so the page does not say what is allowed."""
    fields = ((f"`{path}`", _type(schema), schema.get("description", "")) for path, schema in _walk(status, "status"))
    return _table(("field", "type", "meaning"), fields)


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


def _all_arguments(catalogue: Catalogue) -> Iterator[str]:
    """Yield a part for each plugin with arguments; plugins with the same ones share it."""
    parts: dict[str, list[str]] = {}
    for name in catalogue:
        if has_arguments(catalogue[name]):
            parts.setdefault(_arguments(catalogue[name]), []).append(name)
    yield from (f"### {', '.join(names)}\n\n{part}" for part, names in parts.items())


def _arguments(plugin: type[Plugin]) -> str:
    schema = argument_schema(plugin)
    fields = [(path, part) for path, part in _walk(schema, "") if path not in ("apiVersion", "kind")]
    described = schema.get("description", "").removeprefix(f"Arguments of {plugin.name}.")
    return (f"{described}\n\n" if described else "") + _fields(fields)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Format a Markdown table, without empty columns."""
    cells = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
    kept = [at for at in range(len(head)) if any(row[at] for row in cells)]
    lines = [[head[at] for at in kept], ["---"] * len(kept), *([row[at] for at in kept] for row in cells)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    sys.stdout.write(reference(in_tree()))
