"""Works out the texts that an expression of the source may be, with `…` for values of a run.

It follows names, members of enumerations and functions of the same module, and evaluates nothing: no package is imported.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, Final

#: Stands for a value that is put in at run time.
GAP: Final = "…"
#: Three letters in a row: a text without them has no words of its own.
WORD: Final = re.compile(r"[^\W\d_]{3}")
#: The functions and classes around an expression, the outermost first.
Scope = tuple[ast.AST, ...]
Function = ast.FunctionDef | ast.AsyncFunctionDef

_PERCENT: Final = re.compile(r"%(?:\.\d+)?[sdrfg]")
#: Steps that names and calls are followed. A message is seldom written more than four functions away.
_DEEPEST: Final = 8
#: Methods of texts that keep their words.
_KEEPING: Final = ("replace", "format", "removeprefix", "strip")


class Module:
    """A module's syntax tree, and what its names stand for.

    Attributes:
        name: dotted name.
        file: path of the file.
        tree: syntax tree.
        values: expression that each name of the module's level is assigned.
        functions: functions and methods; of several with one name the first.
        classes: classes.
        imports: name of the module, and name there, by imported name.
    """

    def __init__(self, name: str, file: Path) -> None:
        self.name, self.file = name, file
        self.tree = ast.parse(file.read_text(encoding="utf-8"))
        self.values = assigned(self.tree.body)
        self.functions: dict[str, Function] = {}
        self.classes: dict[str, ast.ClassDef] = {}
        self.imports: dict[str, tuple[str, str]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                self.imports.update({each.asname or each.name: (node.module, each.name) for each in node.names})
            elif isinstance(node, ast.ClassDef):
                self.classes[node.name] = node
            elif isinstance(node, Function):
                self.functions.setdefault(node.name, node)

    @cached_property
    def calls(self) -> Mapping[str, Sequence[tuple[ast.Call, ast.AST]]]:
        """Calls by the name of the called function, with the function around each."""
        found: dict[str, list[tuple[ast.Call, ast.AST]]] = {}
        for outer in (each for each in ast.walk(self.tree) if isinstance(each, Function)):
            for call in (each for each in ast.walk(outer) if isinstance(each, ast.Call)):
                found.setdefault(last_name(call.func), []).append((call, outer))
        return found


def assigned(body: Sequence[ast.stmt]) -> dict[str, ast.expr]:
    """Return the expressions that a module or a class assigns to names."""
    found: dict[str, ast.expr] = {}
    for node in body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            found[node.target.id] = node.value
    return found


def last_name(node: ast.expr) -> str:
    """Return the last part of a dotted name; "" for another expression."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def read_modules(root: Path, packages: Mapping[str, str]) -> dict[str, Module]:
    """Read the modules of packages, by dotted name.

    Args:
        root: folder of the checkout.
        packages: folder below it that holds each package.
    """
    found: dict[str, Module] = {}
    for package, folder in packages.items():
        for file in sorted((root / folder / package).rglob("*.py")):
            name = ".".join(file.relative_to(root / folder).with_suffix("").parts).removesuffix(".__init__")
            found[name] = Module(name, file)
    return found


class Texts:
    """Works out the texts of one module's expressions."""

    def __init__(self, modules: Mapping[str, Module], module: Module) -> None:
        self._modules, self._module = modules, module
        self._readers: Mapping[type[ast.expr], Callable[[Any, Scope, int], list[str]]] = {
            ast.Constant: self._constant,
            ast.JoinedStr: self._joined,
            ast.BinOp: self._sum,
            ast.IfExp: lambda node, scope, depth: self._read(node.body, scope, depth) + self._read(node.orelse, scope, depth),
            ast.BoolOp: lambda node, scope, depth: [text for each in node.values for text in self._read(each, scope, depth)],
            ast.GeneratorExp: lambda node, scope, depth: self._read(node.elt, scope, depth),
            ast.ListComp: lambda node, scope, depth: self._read(node.elt, scope, depth),
            ast.Name: lambda node, scope, depth: self._named(node.id, scope, depth),
            ast.Attribute: self._member,
            ast.Call: self._called,
        }

    def of(self, node: ast.expr, scope: Scope) -> list[str]:
        """Return the texts that an expression may be: at least one, with gaps for values that are not known."""
        found = (re.sub(rf"{GAP}(?:{GAP})+", GAP, " ".join(text.split())) for text in self._read(node, scope, 0))
        return list(dict.fromkeys(found)) or [GAP]

    def _read(self, node: ast.expr, scope: Scope, depth: int) -> list[str]:
        reader = self._readers.get(type(node))
        return [GAP] if reader is None or depth > _DEEPEST else reader(node, scope, depth + 1)

    def _constant(self, node: ast.Constant, _scope: Scope, _depth: int) -> list[str]:
        return [_PERCENT.sub(GAP, node.value).replace("%%", "%")] if isinstance(node.value, str) else [str(node.value)]

    def _joined(self, node: ast.JoinedStr, scope: Scope, depth: int) -> list[str]:
        parts = ([str(each.value)] if isinstance(each, ast.Constant) else self._put_in(each, scope, depth) for each in node.values)
        return ["".join(text) for text in product(*parts)]

    def _put_in(self, node: ast.expr, scope: Scope, depth: int) -> list[str]:
        """Return the texts of a value inside a text, if they have words or are a known value; else a gap."""
        value = node.value if isinstance(node, ast.FormattedValue) else node
        if not isinstance(value, (ast.Name, ast.Call)):
            return [GAP]
        texts = self._read(value, scope, depth)
        if isinstance(value, ast.Call):
            return texts if any(map(WORD.search, texts)) else [GAP]
        known = all(map(WORD.search, texts)) or (len(texts) == 1 and GAP not in texts[0])
        return texts if known else [GAP]

    def _sum(self, node: ast.BinOp, scope: Scope, depth: int) -> list[str]:
        if not isinstance(node.op, ast.Add):
            return [GAP]
        return [a + b for a in self._read(node.left, scope, depth) for b in self._read(node.right, scope, depth)]

    def _named(self, name: str, scope: Scope, depth: int) -> list[str]:
        for outer in reversed(scope):
            values = [(value, scope) for known, value in _local(outer) if known == name] + self._given(outer, name)
            if values:
                return [text for value, there in values for text in self._read(value, there, depth)]
        return self._of_module(name, depth)

    def _given(self, function: ast.AST, name: str) -> list[tuple[ast.expr, Scope]]:
        """Return what the module's calls of a function give for its parameter `name`, with the function around each call."""
        if not isinstance(function, Function):
            return []
        names = [each.arg for each in function.args.args if each.arg not in ("self", "cls")]
        if name not in names:
            return []
        at = names.index(name)
        return [(each.args[at], (outer,)) for each, outer in self._module.calls.get(function.name, ()) if len(each.args) > at]

    def _of_module(self, name: str, depth: int) -> list[str]:
        if name in self._module.values:
            return self._read(self._module.values[name], (), depth)
        home, original = self._module.imports.get(name, ("", ""))
        if home not in self._modules or depth > _DEEPEST:
            return [GAP]
        return Texts(self._modules, self._modules[home])._of_module(original, depth + 1)  # noqa: SLF001 - one class

    def _member(self, node: ast.Attribute, scope: Scope, depth: int) -> list[str]:
        """Return the value of a member of an enumeration, with or without `.value`."""
        if node.attr == "value" and isinstance(node.value, ast.Attribute):
            return self._member(node.value, scope, depth)
        home, original = self._module.imports.get(last_name(node.value), (self._module.name, last_name(node.value)))
        classes = self._modules[home].classes if home in self._modules else {}
        value = assigned(classes[original].body).get(node.attr) if original in classes else None
        return [value.value] if isinstance(value, ast.Constant) and isinstance(value.value, str) else [GAP]

    def _called(self, node: ast.Call, scope: Scope, depth: int) -> list[str]:
        name = last_name(node.func)
        if name in _KEEPING and isinstance(node.func, ast.Attribute):
            return self._read(node.func.value, scope, depth)
        if name in ("join", "printable") and node.args:
            return self._read(node.args[0], scope, depth)
        body = self._module.functions.get(name)
        ours = isinstance(node.func, ast.Name) or ast.unparse(node.func).startswith("self.")
        if body is None or not ours or body in scope:
            return [GAP]
        return [text for value in returned(body) for text in self._read(value, (*scope, body), depth)]


def returned(function: Function) -> Iterator[ast.expr]:
    """Yield the expressions that a function returns or yields."""
    for node in ast.walk(function):
        if isinstance(node, (ast.Return, ast.Yield)) and node.value is not None:
            yield node.value


def _local(scope: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield what a function assigns to its names; of a choice of pairs, each alternative."""
    for node in ast.walk(scope):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            yield node.target.id, node.value
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
            for value in [node.value.body, node.value.orelse] if isinstance(node.value, ast.IfExp) else [node.value]:
                parts = value.elts if isinstance(value, ast.Tuple) else []
                yield from ((last_name(each), part) for each, part in zip(node.targets[0].elts, parts, strict=False))
