"""How large the house is, room by room; `make trends`. With a commit, how much each figure differs from what it was there.

    python .ci/trends.py [COMMIT]

A line of code is one without docstrings, comments and blanks. Attributes are those that a class's methods assign to `self`. A plain pod
touches each module that runs a line while `placewright.testing.World` decides the pod.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
#: Folders of this repository that hold code. A room is a package two levels below them, and a folder of tests.
SOURCES: Final = ("operator", "console", "lab", "tests", "benchmarks", "tools", "examples")
_LAYOUT: Final = frozenset({tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER})
_DEFINED: Final = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
#: Words of a sentence that a reader has to read twice.
_LONG: Final = 20
_COLUMNS: Final = ("modules", "code", "comments", "classes", "methods", "most", "attributes", "docstrings", "words", "long")
#: Decides a plain pod, and prints how many modules ran a line meanwhile.
_PLAIN_POD: Final = """
import sys
from placewright.testing import World, node, pod
seen = set()
def called(frame, event, arg):
    name = frame.f_code.co_filename
    if "/placewright/" in name and "/testing/" not in name and frame.f_code.co_name != "<module>":
        seen.add(name)
world = World().add(node("a"), node("b"), pod("first"))
sys.settrace(called)
world.add(pod("web"))
sys.settrace(None)
assert world.node_of("web")
print(len(seen))
"""


def room_of(path: Path) -> str:
    """Return the room of a file; its path is relative to the root."""
    return "/".join(path.parts[: 3 if path.parts[0] in ("operator", "console", "lab") else 2]) if len(path.parts) > 2 else path.parts[0]


def measured(root: Path) -> dict[str, Counter[str]]:
    """Measure each room of a checkout."""
    found: dict[str, Counter[str]] = {}
    for path in sorted(each for source in SOURCES for each in (root / source).rglob("*.py")):
        count = found.setdefault(room_of(path.relative_to(root)), Counter())
        for name, figure in _of_module(path.read_text(encoding="utf-8")):
            count[name] = max(count[name], figure) if name in ("most", "attributes") else count[name] + figure
    return found


def _of_module(source: str) -> Iterator[tuple[str, int]]:
    tree, code, comments = ast.parse(source), set[int](), 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        comments += token.type == tokenize.COMMENT
        if token.type not in _LAYOUT:
            code.update(range(token.start[0], token.end[0] + 1))
    for each in ast.walk(tree):
        if isinstance(each, _DEFINED) and (text := ast.get_docstring(each)) is not None:
            code -= set(range(each.body[0].lineno, (each.body[0].end_lineno or 0) + 1))
            yield "docstrings", 1
            yield "words", len(text.split())
            yield "long", sum(len(each.split()) > _LONG for each in re.split(r"(?<=[.;:])\s|\n\s*\n", text))
        if isinstance(each, ast.ClassDef):
            methods = sum(isinstance(part, _FUNCTIONS) for part in each.body)
            assigned = {part.attr for part in ast.walk(each) if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store)}
            yield from (("classes", 1), ("methods", methods), ("most", methods), ("attributes", len(assigned)))
    yield from (("modules", 1), ("code", len(code)), ("comments", comments))


def plain_pod(root: Path) -> int:
    """Count the modules that a plain pod touches in a checkout."""
    run = subprocess.run(
        [sys.executable, "-P", "-c", _PLAIN_POD], env={"PYTHONPATH": str(root / "operator")}, capture_output=True, check=True
    )
    return int(run.stdout)


def table(now: dict[str, Counter[str]], before: dict[str, Counter[str]] | None) -> Iterator[str]:
    """Lines of a table: a row for each room that has something to say, and the sums."""
    yield f"{'room':32}" + "".join(f"{name:>18}" if before is not None else f"{name:>12}" for name in _COLUMNS)
    tops = sorted({room.partition("/")[0] for room in (*now, *(before or ()))})
    rooms = sorted({*now, *(before or ())})
    groups = [(room, [room]) for room in rooms] + [
        (f"all of {top}", [room for room in rooms if room.partition("/")[0] == top]) for top in tops
    ]
    for name, members in groups:
        one, other = (_summed(each, members) for each in (now, before or {}))
        if before is None or one != other:
            yield f"{name:32}" + "".join(_cell(one[each], None if before is None else other[each]) for each in _COLUMNS)


def _summed(figures: dict[str, Counter[str]], rooms: list[str]) -> Counter[str]:
    found: Counter[str] = Counter()
    for count in (figures[room] for room in rooms if room in figures):
        for name in _COLUMNS:
            found[name] = max(found[name], count[name]) if name in ("most", "attributes") else found[name] + count[name]
    return found


def _cell(figure: int, before: int | None) -> str:
    return f"{figure:12,}" if before is None else f"{figure:10,} ({figure - before:+,})".rjust(18)


def main(arguments: list[str]) -> int:
    """Print the figures of this checkout, beside those of a commit if one is named; return the exit status."""
    with tempfile.TemporaryDirectory() as folder:
        before = None
        touched = [plain_pod(ROOT)]
        if arguments:
            archive = subprocess.run(["git", "-C", str(ROOT), "archive", arguments[0]], stdout=subprocess.PIPE, check=True)
            subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
            before = measured(Path(folder))
            touched.append(plain_pod(Path(folder)))
        for line in table(measured(ROOT), before):
            sys.stdout.write(f"{line}\n")
    sys.stdout.write(f"modules that a plain pod touches: {', before: '.join(map(str, touched))}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
