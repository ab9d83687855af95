"""The prose linter: words that hide the subject of a sentence, and sections that a docstring lacks. The rules are in prose.toml.

    python .ci/prose.py [ROOT]  check the rooms and documents that hold; part of `make lint`

Ruff's pydocstyle rules hold the layout of docstrings, that each public thing has one, and that an Args section names every argument. Ruff
has no rule for words, and none that asks for sections only where a function is large enough to need them.
"""

from __future__ import annotations

import ast
import inspect
import io
import re
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

RULES: Final = Path(__file__).with_name("prose.toml")
#: String constants of so many words are messages that people read: log lines, errors, help of commands and metrics.
_WORDS_OF_A_MESSAGE: Final = 4
#: Words of a sentence.
_LONGEST: Final = 20
_SECTION: Final = re.compile(r"^ *(Args|Returns|Yields|Raises):$", re.MULTILINE)
#: `code` in backticks, and directives to tools, are no prose.
_CODE: Final = re.compile(r"``[^`]+``|`[^`]+`|^#:? ?-{3}.*|(?:noqa|type|fmt|pragma): ?[\w\[\], ]+", re.MULTILINE)
#: Before the text of an attribute, in a docstring or in the comment above it.
_ATTRIBUTE: Final = r"(?:\A#:\x20|^\x20+(?-i:[a-z_]\w*(?:,\x20[a-z_]\w*)*):\x20)"
#: Where a sentence ends: a point, a colon or a semicolon, an empty line, the next item or attribute, an example.
_END: Final = re.compile(r"(?<=[.;:?!])[)\"']?\s+|\n\s*\n|\n\s*(?:[-*|]|\d\.) ")
#: An indented block: a table or a drawing below a sentence that ends with a colon, or an example.
_BLOCK: Final = re.compile(r"(?::\n\s*\n|^Example:\n)(?: {4,}.*(?:\n|\Z)|\s*\n)+", re.MULTILINE)
_FENCED: Final = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
#: Parts of a document that are no sentences: regions that a command writes, rows of tables, headings, marks.
_NO_SENTENCE: Final = re.compile(r"<!-- ([^>]+) -->(?s:.*?)<!-- end of [^>]+ -->|^(?:\||#|<!--).*$", re.MULTILINE)
_Function = ast.FunctionDef | ast.AsyncFunctionDef


class Prose(NamedTuple):
    """A piece of text: where it begins, whether it is a docstring, whose first words count as its opening, a comment, or a document."""

    line: int
    text: str
    docstring: bool = False
    comment: bool = False
    document: bool = False

    def sentences(self) -> Iterator[tuple[int, int]]:
        """Iterate over the sentences of a docstring, a comment or a document: the line, and how many words."""
        text = re.sub(r"^#:? ?", "", self.text, flags=re.MULTILINE) if self.comment else inspect.cleandoc(self.text)
        text = _BLOCK.sub(lambda match: "." + "\n" * match.group().count("\n"), text)
        text = _NO_SENTENCE.sub(lambda match: "\n" * match.group().count("\n"), text) if self.document else text
        begin = 0
        for end in (*_END.finditer(text), None):
            sentence = text[begin : end.start() if end else None]
            if sentence.strip():
                yield self.line + text.count("\n", 0, begin + len(sentence) - len(sentence.lstrip())), len(sentence.split())
            begin = end.end() if end else 0


class Finding(NamedTuple):
    """A broken rule."""

    file: str
    line: int
    problem: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.problem}"


@dataclass(frozen=True)
class Rules:
    """The rules of prose.toml, compiled. Exceptions that excused a finding are noted, because one that excuses none must go."""

    words: list[tuple[re.Pattern[str], str]]
    openings: list[tuple[re.Pattern[str], str]]
    exceptions: list[dict[str, str]]
    besides: list[dict[str, str]]
    rooms: list[str]
    documents: list[str]
    sections: list[str]
    attributes: list[tuple[re.Pattern[str], str]] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path = RULES) -> Rules:
        """Read a file of rules."""
        told: dict[str, Any] = tomllib.loads(path.read_text())
        begins = (("words", r"\b"), ("openings", r"\A\s*"), ("attributes", _ATTRIBUTE))
        words, openings, attributes = ([_compiled(rule, begin) for rule in told[key]] for key, begin in begins)
        exceptions, besides = (told.get(key, []) for key in ("exceptions", "besides"))
        return cls(words, openings, exceptions, besides, told["rooms"], told["documents"], told["sections"], attributes)

    def broken_by(self, prose: Prose, name: str = "") -> Iterator[tuple[int, str]]:
        """Find forbidden words, forbidden openings of docstrings and attributes, and sentences that are too long: line and problem."""
        text = _CODE.sub(lambda match: re.sub(r"\S", "_", match.group()), prose.text)
        code = name.endswith(".py")
        for pattern, instead in (*self.words, *(self.openings if prose.docstring else ()), *(self.attributes if code else ())):
            for match in pattern.finditer(text):
                found = " ".join(re.sub(r"#:?", "", match.group()).split())
                yield prose.line + text.count("\n", 0, match.start()), f'"{found}": {instead}'
        if prose.docstring or prose.comment or prose.document:
            for line, words in prose.sentences():
                if words > _LONGEST:
                    yield line, f"a sentence of {words} words: at most {_LONGEST}"

    def excuse(self, finding: Finding) -> dict[str, str] | None:
        """Return the exception that excuses a finding, or None: one for its words, or one for its whole file."""
        excuses = (each for each in (*self.exceptions, *self.besides) if each["file"] == finding.file)
        return next((each for each in excuses if each.get("text", "") in finding.problem), None)


def _compiled(rule: dict[str, str], begin: str) -> tuple[re.Pattern[str], str]:
    # A phrase may be broken over two lines of a docstring or a comment.
    return re.compile(f"{begin}(?:{rule['pattern']})\\b".replace(" ", r"\s+(?:#:?\s+)?"), re.IGNORECASE | re.MULTILINE), rule["instead"]


# --- the text of a file --------------------------------------------------------------------------------------------------------------


def prose_of(path: Path) -> Iterator[Prose]:
    """Iterate over the docstrings, comments and messages of a module, or the text of a document without its code."""
    source = path.read_text()
    if path.suffix == ".md":
        yield Prose(1, _FENCED.sub(lambda match: "\n" * match.group().count("\n"), source), document=True)
        return
    tree, docstrings = ast.parse(source), set[ast.expr]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | _Function) and ast.get_docstring(node) is not None:
            constant = _expression(node.body[0])
            docstrings.add(constant)
            yield Prose(constant.lineno, ast.literal_eval(constant), docstring=True)
    constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and node not in docstrings)
    for node in constants:
        if isinstance(node.value, str) and len(node.value.split()) >= _WORDS_OF_A_MESSAGE:
            yield Prose(node.lineno, node.value)
    yield from _comments(source)


def _expression(statement: ast.stmt) -> ast.expr:
    assert isinstance(statement, ast.Expr)
    return statement.value


def _comments(source: str) -> Iterator[Prose]:
    """Iterate over comments; comments on successive lines are one piece."""
    block: list[tokenize.TokenInfo] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        if block and token.start != (block[-1].start[0] + 1, block[-1].start[1]):
            yield Prose(block[0].start[0], "\n".join(each.string for each in block), comment=True)
            block = []
        block.append(token)
    if block:
        yield Prose(block[0].start[0], "\n".join(each.string for each in block), comment=True)


# --- sections ------------------------------------------------------------------------------------------------------------------------


def public_functions(tree: ast.Module) -> Iterator[_Function]:
    """Iterate over functions and methods whose name, and whose class's name, has no underscore in front."""
    bodies = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_"))]
    for body in bodies:
        yield from (node for node in body if isinstance(node, _Function) and not node.name.startswith("_"))


def needed_sections(function: _Function) -> set[str]:
    """Return the sections that a function needs: Args and Returns with more than one argument, Raises where it raises an exception."""
    decorators = {ast.unparse(each) for each in function.decorator_list}
    arguments = [each.arg for each in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]
    arguments = [each for each in arguments if each not in ("self", "cls")]
    needed: set[str] = set()
    if len(arguments) > 1:
        needed.add("Args")
        returned = "None" if function.returns is None else ast.unparse(function.returns)
        if returned not in ("None", "NoReturn", "Never", "Iterator[None]", "AsyncIterator[None]"):
            needed.add("Returns")
    if any(_raises(statement) for statement in function.body):
        needed.add("Raises")
    return set() if decorators & {"overload", "typing.overload"} else needed


def _raises(node: ast.AST) -> bool:
    """Return whether a statement raises a new exception, outside of functions that it defines."""
    if isinstance(node, _Function | ast.Lambda | ast.ClassDef):
        return False
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and ast.unparse(node.exc.func) != "NotImplementedError":
        return True
    return any(_raises(child) for child in ast.iter_child_nodes(node))


def lacking_sections(function: _Function) -> set[str]:
    """Return the needed sections that are missing. In Google's style a summary that begins with Return replaces that section."""
    docstring = ast.get_docstring(function) or ""
    if "Implements `" in docstring:  # the contract has the sections
        return set()
    there = set(_SECTION.findall(docstring))
    if "Yields" in there or docstring.startswith(("Return ", "Returns ", "Iterate ", "Yield ")):
        there.add("Returns")
    return needed_sections(function) - there


# --- checking ------------------------------------------------------------------------------------------------------------------------


def check(root: Path, rules: Rules) -> list[Finding]:
    """Find every broken rule in the rooms and documents that hold, and every exception that excuses nothing."""
    files = [path for room in rules.rooms for path in sorted((root / room).rglob("*.py"))]
    files += [path for pattern in rules.documents for path in sorted(root.glob(pattern))]
    found: list[Finding] = []
    used: list[dict[str, str]] = []
    for path in files:
        for finding in check_file(path, path.relative_to(root).as_posix(), rules):
            excuse = rules.excuse(finding)
            (found.append(finding) if excuse is None else used.append(excuse))
    idle = [each for each in (*rules.exceptions, *rules.besides) if each not in used]
    return found + [Finding(RULES.name, 1, f"the exception for {each['file']} excuses nothing any more: {each}") for each in idle]


def check_file(path: Path, name: str, rules: Rules) -> Iterator[Finding]:
    """Find the broken rules of one file.

    Args:
        path: a module or a document.
        name: the path that findings show.
        rules: for its words, and for the rooms that need sections.

    Yields:
        One finding for each broken rule.
    """
    for prose in prose_of(path):
        yield from (Finding(name, line, problem) for line, problem in rules.broken_by(prose, name))
    if name.startswith(tuple(rules.sections)):
        for function in public_functions(ast.parse(path.read_text())):
            lacking = sorted(lacking_sections(function))
            if lacking:
                yield Finding(name, function.lineno, f"{function.name} needs {' and '.join(lacking)} in its docstring")


def main(arguments: list[str]) -> int:
    """Check a checkout; return the exit status."""
    findings = check(Path(arguments[0] if arguments else "."), Rules.read())
    sys.stdout.write("".join(f"{finding}\n" for finding in findings))
    return 1 if findings else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
