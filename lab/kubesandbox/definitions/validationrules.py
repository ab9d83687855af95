"""Rules in CEL (`x-kubernetes-validations`): their checks, and their evaluation on an object and its change.

Like in an API server, a rule judges every present value. A rule that names `oldSelf` judges only values that were there before, found again
by list keys. Other rules skip an unchanged value (ratcheting, Kubernetes 1.30). Messages have the words of an API server.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from kubesandbox.definitions.celexpressions import RuleExpression, rule_expression
from kubesandbox.definitions.schemas import type_name
from kubesandbox.fields import Fault, Faults, forbidden, invalid, required, unsupported
from kubesandbox.status import reason_of
from placewright.cel.syntax import ExpressionError

Schema = Mapping[str, Any]

_RULES: Final = "x-kubernetes-validations"
_REASONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "FieldValueInvalid": "Invalid value{shown}: {message}",
        "FieldValueRequired": "Required value: {message}",
        "FieldValueForbidden": "Forbidden: {message}",
        "FieldValueDuplicate": "Duplicate value{shown}",
    }
)
#: Faults after which an API server skips the rules, because types may be wrong.
_BLOCKING: Final = frozenset({"FieldValueRequired", "FieldValueTypeInvalid", "FieldValueTooLong", "FieldValueTooMany"})
_BLOCKED: Final = (
    "Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)
#: Reserved words of the language that are also possible names of fields.
_RESERVED: Final = frozenset(
    {"true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop"}
    | {"package", "namespace", "return", "var", "void", "while"}
)
_ESCAPED: Final = re.compile(r"__|[.\-/]")
_ESCAPES: Final = MappingProxyType({"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"})
_MISSING: Final = object()


@dataclass(frozen=True, slots=True)
class _Rule:
    """One compiled rule. `where` is its fieldPath, added to the path of the value, and `named` is its name in errors."""

    test: RuleExpression
    named: str
    message: str
    message_expression: RuleExpression | None
    reason: str
    where: str


@dataclass(slots=True)
class RuleTree:
    """The rules of a schema and of its inner schemas, without parts that have no rules."""

    schema: Schema
    rules: list[_Rule] = field(default_factory=list)
    properties: dict[str, RuleTree] = field(default_factory=dict)
    items: RuleTree | None = None
    others: RuleTree | None = None

    @property
    def empty(self) -> bool:
        """True if there is no rule here or below."""
        return not (self.rules or self.properties or self.items or self.others)


def grow(schema: Schema) -> RuleTree:
    """Return the rules of a schema that `faults_of_rules` found sound."""
    tree = RuleTree(schema, [_compiled(rule) for rule in schema.get(_RULES) or ()])
    grown = {name: grow(part) for name, part in (schema.get("properties") or {}).items()}
    tree.properties = {name: part for name, part in grown.items() if not part.empty}
    tree.items, tree.others = _below(schema, "items"), _below(schema, "additionalProperties")
    return tree


def _below(schema: Schema, name: str) -> RuleTree | None:
    part = schema.get(name)
    tree = grow(part) if isinstance(part, dict) else None
    return None if tree is None or tree.empty else tree


def _compiled(rule: Mapping[str, Any]) -> _Rule:
    saying = rule.get("messageExpression")
    message, text = (rule.get("message") or "").strip(), rule["rule"].strip()
    return _Rule(
        test=rule_expression(rule["rule"]),
        named=message or text,
        message=message or f"failed rule: {text}",
        message_expression=rule_expression(saying) if saying else None,
        reason=rule.get("reason") or "FieldValueInvalid",
        where=rule.get("fieldPath") or "",
    )


# --- faults of an object -----------------------------------------------------------------------------------------------------


def check_rules(new: Mapping[str, Any], old: Mapping[str, Any] | None, tree: RuleTree, before: list[Fault]) -> Faults:
    """Find the faults of a whole object. `before` are its faults by the schema, `old` is the object that it replaces."""
    if tree.empty:
        return
    if any(reason_of(what) in _BLOCKING for _, what in before):
        yield "<nil>", _BLOCKED
        return
    yield from _check(new, _MISSING if old is None else old, tree, "")


def _check(value: Any, old: Any, tree: RuleTree, path: str) -> Faults:
    if value is None:
        return
    unchanged = value == old
    variables = {"self": _presented(value, tree.schema, root=not path)}
    if old is not _MISSING and old is not None:
        variables["oldSelf"] = _presented(old, tree.schema, root=not path)
    for rule in tree.rules:
        if rule.test.compares and "oldSelf" not in variables:
            continue
        if rule.test.compares or not unchanged:
            yield from _broken(rule, variables, value, path)
    if isinstance(value, dict):
        yield from _check_fields(value, old if isinstance(old, dict) else {}, tree, path)
    elif isinstance(value, list) and tree.items is not None:
        for at, item in enumerate(value):
            yield from _check(item, _counterpart(item, old, tree.schema), tree.items, f"{path}[{at}]")


def _check_fields(value: dict[str, Any], old: dict[str, Any], tree: RuleTree, path: str) -> Faults:
    for name, part in tree.properties.items():
        if name in value:
            yield from _check(value[name], old.get(name, _MISSING), part, f"{path}.{name}" if path else name)
    if tree.others is not None:
        for name, below in value.items():
            yield from _check(below, old.get(name, _MISSING), tree.others, f"{path}[{name}]")


def _counterpart(item: Any, old: Any, schema: Schema) -> Any:
    """Return the item of the old list with the same keys, or None for a list without keys."""
    if schema.get("x-kubernetes-list-type") != "map" or not isinstance(old, list) or not isinstance(item, dict):
        return _MISSING
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    found = (each for each in old if isinstance(each, dict) and all(each.get(key) == item.get(key) for key in keys))
    return next(found, _MISSING)


def _broken(rule: _Rule, variables: Mapping[str, Any], value: Any, path: str) -> Faults:
    try:
        if rule.test.evaluate(variables) is True:
            return
        message = _message(rule, variables)
    except ExpressionError as error:
        yield invalid(f"{path}{rule.where}" or "<nil>", type_name(value), f"{error} evaluating rule: {rule.named}")
        return
    shown = "" if isinstance(value, (dict, list)) else f": {json.dumps(value)}"
    yield f"{path}{rule.where}" or "<nil>", _REASONS[rule.reason].format(shown=shown, message=message)


def _message(rule: _Rule, variables: Mapping[str, Any]) -> str:
    """Return the rule's own message if its expression has none, like Kubernetes."""
    if rule.message_expression is None:
        return rule.message
    try:
        said = rule.message_expression.evaluate(variables)
    except ExpressionError:
        return rule.message
    return said.strip() if isinstance(said, str) and said.strip() and "\n" not in said else rule.message


def _presented(value: Any, schema: Schema, *, root: bool = False) -> Any:
    """Return a value in the form for rules.

    Numbers have the declared type, names are escaped, nulls are gone, and metadata has only the name.
    """
    if isinstance(value, dict):
        return _presented_object(value, schema, root=root)
    if isinstance(value, list):
        return [_presented(item, schema.get("items") or {}) for item in value]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        kind = schema.get("type")
        return float(value) if kind == "number" else int(value) if kind == "integer" else value
    return value


def _presented_object(value: dict[str, Any], schema: Schema, *, root: bool) -> dict[str, Any]:
    properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
    shown: dict[str, Any] = {}
    for name, below in value.items():
        if root and name == "metadata":
            shown[name] = {key: below[key] for key in ("name", "generateName") if key in below}
        elif below is None:
            continue
        elif name in properties:
            shown[escaped(name)] = _presented(below, properties[name])
        else:
            shown[name] = _presented(below, others if isinstance(others, dict) else {})
    return shown


def escaped(name: str) -> str:
    """Return a field's name in the form for rules."""
    return f"__{name}__" if name in _RESERVED else _ESCAPED.sub(lambda found: _ESCAPES[found[0]], name)


# --- faults of a definition --------------------------------------------------------------------------------------------------


def faults_of_rules(schema: Schema, path: str, *, correlatable: bool) -> Faults:
    """Yield the faults of the rules at one place of a schema.

    `correlatable` is True if the old value can be found, because all lists above have keys.
    """
    rules = schema.get(_RULES) or ()
    for at, rule in enumerate(rules if isinstance(rules, list) else ()):
        where = f"{path}.{_RULES}[{at}]"
        if not isinstance(rule, dict) or not str(rule.get("rule") or "").strip():
            yield required(f"{where}.rule", "rule is not specified")
            continue
        yield from _faults_of_rule(rule, where, correlatable=correlatable)


def _faults_of_rule(rule: Mapping[str, Any], where: str, *, correlatable: bool) -> Faults:
    for name in ("rule", "messageExpression"):
        try:
            found = rule_expression(str(rule[name])) if rule.get(name) else None
        except ExpressionError as error:
            yield invalid(f"{where}.{name}", rule[name], f"compilation failed: {error}")
            continue
        if found is not None and found.compares and not correlatable:
            yield invalid(f"{where}.{name}", rule[name], "oldSelf cannot be used on the uncorrelatable portion of the schema")
    if rule.get("reason") not in (None, *_REASONS):
        yield unsupported(f"{where}.reason", rule["reason"], sorted(_REASONS))
    if rule.get("optionalOldSelf"):
        yield forbidden(f"{where}.optionalOldSelf", "the sandbox does not have it")
