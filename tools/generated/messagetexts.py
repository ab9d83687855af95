"""Finds the messages that a person can meet in the packages' source: log lines, errors, notes, refusals, events, reasons of conditions.

A message is a text with `…` for values, as in `profile …: generation … is refused: …`. One without words of its own passes on another's
text, and is left out: its words are found where they are written.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

from placewright.cli.main import commands
from tools.generated.sourcetexts import GAP, WORD, Module, Scope, Texts, assigned, last_name, read_modules, returned

ROOT: Final = Path(__file__).resolve().parents[2]
#: Packages that users run, by the folder that holds them.
PACKAGES: Final = {"placewright": "operator", "placewright_console": "console", "placewright_lab": "lab", "kubesandbox": "lab"}
#: Base classes of errors by the kind of their message. Their subclasses count, too.
ERRORS: Final[Mapping[str, tuple[str, ...]]] = {
    # `placewright.cli.main` prints them after `placewright: error:` and ends with code 2.
    "input": (
        "InputError", "ConfigError", "DecodeError", "PluginError", "PluginRegistrationError", "ArgumentTypeError", "NotPlainError",
        "ExpressionError", "DomainLimitError",
    ),
    # A command prints them and ends with code 1, or goes on without its failed part.
    "command": (
        "CannotAsk", "DemoFailed", "ControlPlaneFailed", "BenchFailed", "WaveFailed", "WatchBroken", "FeedBroken", "SandboxFailed",
        "NotKnown", "TemplateRefused",
    ),
    # The operator logs them when it ends or stands by.
    "run": ("CannotElect", "EngineBroken", "TakeoverTooLong"),
    # Answers of the operator's and the console's HTTP servers.
    "page": ("RequestRefused",),
    # Their text is kube-scheduler's, the API server's, a part of another message, or never shown.
    "": (
        # In kube-scheduler's words, in the condition and the events of pods: docs/explain.md.
        "BindError", "EvictError", "VolumeError", "ClaimError", "CycleError", "FitError", "ExtenderError", "SelectorError", "TermsError",
        "TranslationError", "NoSuchClaimError", "UnusableVolumeError", "DemandError", "PoolError", "OutOfSteps", "GaveUp", "NotReady",
        "_Refused", "_TooLong", "QuantityError", "AssumeError", "BadAnswer", "WrongAnswer", "OverdueCallError",
        # In the API server's words.
        "RequestError", "PatchError", "_Failed", "JsonPathError", "ProtobufError",
        # Signals between our own modules: a defect if one is seen.
        "InvariantError", "AlreadyQueuedError", "NoPolicy", "BreachError", "BrokenPromiseError", "RestlessError", "AnswerLost", "NotSent",
        "_OutOfDate", "NotActive", "WireError", "LineTooLong", "Malformed", "ApiError",
    ),
}  # fmt: skip
#: Kind and place of the text that functions return for another module to log or to answer.
PASSED_ON: Final[Mapping[str, tuple[str, str]]] = {
    **dict.fromkeys(
        ("said_of", "Unclaimed.__str__", "Shortfall._collections", "Shortfall._none_of_several", "Shortfall._pods"), ("log", "warning")
    ),
    **dict.fromkeys(("active_elsewhere", "find_pages"), ("page", "503")),
    **dict.fromkeys(("why_last", "_cannot", "Forgotten.__str__"), ("pod", "event")),
}
#: Scripts of the console that tell a person why there is no page, and their sentences that do so.
_SCREENS: Final = ("app.js", "failure.js", "tokenform.js")
_SCREENS_OF: Final = "console/placewright_console/pages/static"
_SENTENCE: Final = re.compile(r"""(["`])(?P<text>(?:[A-Z]|\$\{)(?:(?!\1).)* (?:not|no|cannot|closed|silent)\b(?:(?!\1).)*)\1""")
_PUT_IN: Final = re.compile(r"\$\{[^}]*\}")
_LOGGERS: Final = ("_log", "_logger")
#: Functions of the room `observability` that make records by hand, with the position of the text.
_RECORDS: Final = {"_say": 1, "_own": 1, "_slow": 0}
#: Beginnings of lines that commands write to standard error.
_BEFORE: Final = ("placewright: error: ", "placewright: ", "sandbox: ")
#: Beginnings that the constructors of plugins' errors add.
_PLUGINS: Final = {
    "PluginRegistrationError": "plugin …: ", "PluginBuildError": 'initializing plugin "…": ', "PluginError": 'running … plugin "…": ',
}  # fmt: skip
#: Positions of the reason and of the note among the arguments of a call that records an event.
_EVENTS: Final = {"record": (2, 4), "record_about": (2, 4), "announce": (1, 3)}
_CAMEL: Final = re.compile(r"(?:placewright\.dev/)?[A-Z][A-Za-z]+")
_COMMANDS: Final = frozenset(commands())
#: Commands by a module's or a package's name that is another one.
_COMMAND_OF: Final = {
    "placewright_console": "console", "kubesandbox": "sandbox", "schedulerperf": "bench", "runflags": "run",
    "controlplane": "sandbox",
}  # fmt: skip
#: Kind, text and place of a message.
_Found = tuple[str, str, str]


class Message(NamedTuple):
    """One message.

    Attributes:
        kind: `log`, a key of `ERRORS`, `note`, `event` for an event's reason, `pod` for its note, or `condition`.
        text: its words, with `…` for values.
        where: level of a log line, status of an answer, type of a condition, name of a command; "" if several commands show it.
        file: path of the module, relative to the checkout.
        line: line in it, from 1.
    """

    kind: str
    text: str
    where: str
    file: str
    line: int


class Sources:
    """The messages of packages."""

    def __init__(self, packages: Mapping[str, str] = PACKAGES, root: Path = ROOT) -> None:
        self._root = root
        self._modules = read_modules(root, packages)

    @cached_property
    def classes(self) -> Mapping[str, Sequence[str]]:
        """Names of the bases of each class."""
        found: dict[str, list[str]] = {}
        for module in self._modules.values():
            for name, node in module.classes.items():
                found.setdefault(name, []).extend(map(last_name, node.bases))
        return found

    def errors(self) -> Mapping[str, str]:
        """Return the kind of message of each class of error; empty for an error that no person meets."""
        kinds = {name: kind for kind, names in ERRORS.items() for name in names}
        while more := {name: kinds[base] for name, bases in self.classes.items() if name not in kinds for base in bases if base in kinds}:
            kinds.update(more)
        return kinds

    def unsorted_errors(self) -> set[str]:
        """Return the classes of errors that `ERRORS` does not have, nor a base of theirs."""
        errors = {name for name, bases in self.classes.items() if any(base.endswith(("Error", "Exception")) for base in bases)}
        return errors - self.errors().keys()

    def messages(self) -> Iterator[Message]:
        """Yield every message, in the order of the modules."""
        kinds = self.errors()
        for module in self._modules.values():
            if ".testing" not in module.name:
                file = str(module.file.relative_to(self._root))
                yield from (Message(*found, file, line) for found, line in _Reader(self._modules, module, kinds).read())
        for name in _SCREENS:
            yield from _sentences(self._root / _SCREENS_OF / name, f"{_SCREENS_OF}/{name}")


def _sentences(script: Path, file: str) -> Iterator[Message]:
    """Yield the sentences of a script that tell why there is no page."""
    for number, line in enumerate(script.read_text(encoding="utf-8").splitlines() if script.exists() else (), 1):
        for found in _SENTENCE.finditer(line):
            yield Message("page", _PUT_IN.sub(GAP, found["text"]), "browser", file, number)


class _Reader:
    """Reads the messages of one module."""

    def __init__(self, modules: Mapping[str, Module], module: Module, kinds: Mapping[str, str]) -> None:
        self._module, self._kinds, self._texts = module, kinds, Texts(modules, module).of
        self._command = _command_of(module.name)
        self._nodes: Mapping[type[ast.AST], Callable[[Any, Scope], Iterator[_Found]]] = {
            ast.Call: self._of_call,
            ast.Assign: lambda node, scope: self._of_notes(node.targets[0], node.value, scope),
            ast.AugAssign: lambda node, scope: self._of_notes(node.target, node.value, scope),
            ast.Tuple: self._of_event,
            ast.FunctionDef: self._of_function,
            ast.ClassDef: self._of_class,
        }
        self._calls: Mapping[str, Callable[[ast.Call, Scope], Iterator[_Found]]] = {
            **dict.fromkeys(("warning", "error", "critical", "exception"), self._logged),
            "log": lambda call, scope: self._logged(ast.Call(call.func, call.args[1:], []), scope),
            **dict.fromkeys(("write", "writelines", "append"), self._noted),
            **dict.fromkeys(_EVENTS, self._recorded),
            "Recommendation": lambda call, scope: self._reasons("Advice", call.args[0], scope),
            "pod_unscheduled": lambda call, scope: self._reasons("PodScheduled", call.args[1], scope),
            "Condition": self._of_condition,
            **dict.fromkeys(_RECORDS, self._made),
            "DataPage": lambda call, scope: self._worded("page", call.args[1], "404", scope),
            "Problem": lambda call, scope: self._found_and_allowed(call.args, scope),
            "bad_field": lambda call, scope: self._found_and_allowed((call.args[0], None, call.args[2]), scope),
        }

    def read(self) -> Iterator[tuple[_Found, int]]:
        """Yield the messages, and the line of each."""
        yield from self._inside(self._module.tree, ())

    def _inside(self, node: ast.AST, scope: Scope) -> Iterator[tuple[_Found, int]]:
        if reader := self._nodes.get(type(node)):
            yield from ((found, getattr(node, "lineno", 0)) for found in reader(node, scope))
        inner = (*scope, node) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) else scope
        for child in ast.iter_child_nodes(node):
            yield from self._inside(child, inner)

    # --- calls --------------------------------------------------------------------------------------------------------------

    def _of_call(self, call: ast.Call, scope: Scope) -> Iterator[_Found]:
        name = last_name(call.func)
        reader = self._calls.get(name) or (self._of_error if self._kinds.get(name) else None)
        return iter(()) if reader is None or not (call.args or call.keywords) else reader(call, scope)

    def _logged(self, call: ast.Call, scope: Scope) -> Iterator[_Found]:
        level = last_name(call.func).replace("exception", "error").replace("log", "warning")
        return self._worded("log", call.args[0], level, scope) if _owner(call) in _LOGGERS else iter(())

    def _made(self, call: ast.Call, scope: Scope) -> Iterator[_Found]:
        level = last_name(call.args[0])
        if not self._module.name.startswith("placewright.observability") or level == "INFO":
            return iter(())
        return self._worded("log", call.args[_RECORDS[last_name(call.func)]], "error" if level == "ERROR" else "warning", scope)

    def _noted(self, call: ast.Call, scope: Scope) -> Iterator[_Found]:
        if _owner(call) == "sys.stderr" or _owner(call).endswith("notes"):
            yield from self._worded("note", call.args[0], self._command, scope)
            if isinstance(call.args[0], ast.GeneratorExp):
                yield from self._worded("note", call.args[0].generators[0].iter, self._command, scope)

    def _recorded(self, call: ast.Call, scope: Scope) -> Iterator[_Found]:
        if len(call.args) > 3:  # a recorder of events takes at least an object, a type, a reason and a note
            reason, note = _EVENTS[last_name(call.func)]
            yield from (("event", word, "") for word in self._words(call.args[reason], scope))
            for each in call.args[note : note + 1]:
                yield from self._worded("pod", each, "event", scope)

    def _of_condition(self, call: ast.Call, scope: Scope) -> Iterator[_Found]:
        given = dict(zip(("type", "status", "reason"), call.args, strict=False)) | {each.arg or "": each.value for each in call.keywords}
        if {"type", "reason"} <= set(given):
            for kind in self._words(given["type"], scope):
                yield from self._reasons(kind, given["reason"], scope)

    def _reasons(self, kind: str, node: ast.expr, scope: Scope) -> Iterator[_Found]:
        yield from (("condition", word, kind) for word in self._words(node, scope))

    def _found_and_allowed(self, parts: Sequence[ast.expr | None], scope: Scope) -> Iterator[_Found]:
        if len(parts) == 3:
            path, found, allowed = (GAP if each is None else self._texts(each, scope)[0] for each in parts)
            yield "input", f"{path}: found {found}; allowed {allowed}", self._command

    def _of_error(self, call: ast.Call, scope: Scope) -> Iterator[_Found]:
        name = last_name(call.func)
        kind = self._kinds[name]
        if name in ("NotPlainError", "UnreadableDocument") and len(call.args) > 1:
            first = int(name == "NotPlainError")  # its first argument is the place
            return self._found_and_allowed((None, *call.args[first : first + 2]), scope)
        if name == "RequestRefused":
            return self._worded(kind, call.args[1], self._texts(call.args[0], scope)[0], scope)
        if name in _PLUGINS:
            return ((kind, _PLUGINS[name] + text, "") for text in self._texts(call.args[-1], scope))
        return self._worded(kind, call.args[0], self._command, scope)

    # --- other nodes --------------------------------------------------------------------------------------------------------

    def _of_notes(self, target: ast.expr, value: ast.expr, scope: Scope) -> Iterator[_Found]:
        # In the scheduler a note is that of an event, in kube-scheduler's words.
        if last_name(target) in ("note", "notes") and not self._module.name.startswith("placewright.scheduler."):
            for each in value.elts if isinstance(value, ast.List) else [value]:
                yield from self._worded("note", each, self._command, scope)

    def _of_event(self, node: ast.Tuple, scope: Scope) -> Iterator[_Found]:
        if len(node.elts) == 3 and isinstance(node.elts[0], ast.Constant) and node.elts[0].value in ("Normal", "Warning"):
            yield from (("event", word, "") for word in self._words(node.elts[1], scope))

    def _of_function(self, node: ast.FunctionDef, scope: Scope) -> Iterator[_Found]:
        home = scope[-1] if scope else None
        kind, where = PASSED_ON.get(f"{home.name}.{node.name}" if isinstance(home, ast.ClassDef) else node.name, ("", ""))
        for each in returned(node) if kind else ():
            yield from self._worded(kind, each, where, (*scope, node))

    def _of_class(self, node: ast.ClassDef, _scope: Scope) -> Iterator[_Found]:
        if node.name == "Reason":  # of the condition Ready of profiles
            yield from (("condition", ast.literal_eval(value), "Ready") for value in assigned(node.body).values())

    # --- words --------------------------------------------------------------------------------------------------------------

    def _worded(self, kind: str, node: ast.expr, where: str, scope: Scope) -> Iterator[_Found]:
        """Yield the texts that have words of their own."""
        for text in self._texts(node, scope):
            own = next((text.removeprefix(before) for before in _BEFORE if text.startswith(before)), text)
            if WORD.search(own) and own != "None":
                yield kind, own, where

    def _words(self, node: ast.expr, scope: Scope) -> list[str]:
        return [text for text in self._texts(node, scope) if _CAMEL.fullmatch(text) and text != "None"]


def _owner(call: ast.Call) -> str:
    """Return the object whose method is called, as it is written."""
    return ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""


def _command_of(module: str) -> str:
    """Return the command whose module this is, such as `explain`; "" for a module of several."""
    package, *rooms = module.split(".")
    if package in _COMMAND_OF:
        return _COMMAND_OF[package]
    rooms = rooms[1:] if rooms[:1] == ["cli"] else rooms if package == "placewright_lab" else []
    words = (_COMMAND_OF.get(room, room) for room in rooms)
    return next((word for word in words if word in _COMMANDS), "")
