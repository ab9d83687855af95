"""The prose linter goes red on a planted sentence of each kind, and the rooms and documents that it holds pass."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def loaded() -> Any:
    """The linter, which is a program and no module of a package."""
    spec = importlib.util.spec_from_file_location("prose_linter", ROOT / ".ci" / "prose.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PROSE = loaded()
RULES = PROSE.Rules.read()

#: A sentence for each word and opening that is forbidden, and the words that the finding quotes.
WORDS = [
    ("Tells whoever waits.", "whoever"),
    ("A pod waits, whatever its name is.", "whatever"),
    ("Somebody has to look.", "Somebody"),
    ("The node is anybody's.", "anybody's"),
    ("A binding by someone else.", "someone"),
    ("Nodes, of which there may be none.", "of which"),
    ("Pods of a tenant, of whom two wait.", "of whom"),
    ("The pods, those that wait, are told.", "those that"),
    ("The pods and those who made them.", "those who"),
    ("An error is what goes wrong.", "what goes"),
    ("Reports what happened to the pod.", "what happened"),
    ("Volumes, claims and so on.", "and so on"),
]
OPENINGS = [
    ("It is let go.", "It"),
    ("They wait.", "They"),
    ("Those of one scheduler.", "Those"),
    ("What follows from the pod.", "What"),
    ("Who sits on a seat.", "Who"),
    ("Of its pods, the first.", "Of"),
    ("Something changed.", "Something"),
    ("Nothing to note.", "Nothing"),
    ("As if it stood there.", "As if"),
    ("The same for many rows.", "The same"),
    ("Likewise, for groups.", "Likewise"),
]


def findings(path: Path, text: str, name: str = "operator/room/module.py") -> list[str]:
    """The problems that the linter finds in one file."""
    file = path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(dedent(text))
    room = ["operator/room"]
    rules = PROSE.Rules(RULES.words, RULES.openings, [], [], room, [], room, RULES.attributes)
    return [finding.problem for finding in PROSE.check_file(file, name, rules)]


# --- what is held ------------------------------------------------------------------------------------------------------------------


def test_the_rooms_and_documents_that_hold_break_no_rule() -> None:
    assert [str(finding) for finding in PROSE.check(ROOT, RULES)] == []


def test_every_room_and_document_that_holds_is_there() -> None:
    assert [room for room in RULES.rooms if not list((ROOT / room).rglob("*.py"))] == []
    assert [path for path in RULES.sections if not (ROOT / path).exists()] == []
    assert [pattern for pattern in RULES.documents if not list(ROOT.glob(pattern))] == []


def test_every_exception_has_its_reason() -> None:
    assert [each for each in (*RULES.exceptions, *RULES.besides) if len(each.get("reason", "").split()) < 3] == []


# --- words -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("sentence", "quoted"), WORDS, ids=[quoted for _, quoted in WORDS])
@pytest.mark.parametrize(
    "module",
    [
        '"""A module.\n\n{}\n"""\n',
        'def one() -> None:\n    """Do one thing.\n\n    {}\n    """\n',
        "X = 1  # {}\n",
        "#: {}\nX = 1\n",
        '_log.warning("{} And a log message.")\n',
        'parser.add_argument("--one", help="{} And the help of a command.")\n',
        'raise ValueError(f"{{field}}: {} And an error.")\n',
    ],
    ids=["module", "docstring", "comment", "comment-of-a-value", "log", "help", "error"],
)
def test_a_forbidden_word_is_found(tmp_path: Path, module: str, sentence: str, quoted: str) -> None:
    assert [problem.partition('":')[0] for problem in findings(tmp_path, module.format(sentence))] == [f'"{quoted}']


@pytest.mark.parametrize(("sentence", "quoted"), WORDS, ids=[quoted for _, quoted in WORDS])
def test_a_forbidden_word_is_found_in_a_document(tmp_path: Path, sentence: str, quoted: str) -> None:
    assert [problem.partition('":')[0] for problem in findings(tmp_path, f"# Pods\n\n{sentence}\n", "docs/pods.md")] == [f'"{quoted}']


@pytest.mark.parametrize(("sentence", "quoted"), OPENINGS, ids=[quoted for _, quoted in OPENINGS])
def test_a_forbidden_opening_is_found_in_a_docstring_and_nowhere_else(tmp_path: Path, sentence: str, quoted: str) -> None:
    docstring = f'def one() -> None:\n    """{sentence}"""\n'
    assert [problem.partition('":')[0] for problem in findings(tmp_path, docstring)] == [f'"{quoted}']
    assert findings(tmp_path, f"X = 1  # {sentence}\n") == []


@pytest.mark.parametrize("text", ["of all pods, the first.", "how many pods wait.", "whose pods wait.", "up to 5 pods."])
def test_an_attribute_that_begins_with_no_noun_is_found(tmp_path: Path, text: str) -> None:
    docstring = f'"""Pods.\n\nAttributes:\n    first: {text}\n"""\n'
    comment = f"X = 1\n#: {text.capitalize()}\nY = 1\n"
    for module in (docstring, comment):
        assert [problem.partition('":')[2] for problem in findings(tmp_path, module)] == [f" {RULES.attributes[0][1]}"]
    assert findings(tmp_path, f"#: Number {text}\nX = 1\n") == []


@pytest.mark.parametrize("module", ['"""{}."""\n', "# {}.\nX = 1\n", '"""Pods.\n\nAttributes:\n    first: {}.\n    second: {}.\n"""\n'])
def test_a_sentence_of_more_than_20_words_is_found_in_docstrings_and_comments(tmp_path: Path, module: str) -> None:
    assert findings(tmp_path, module.format(" ".join(["Word"] * 20), "Another")) == []
    long = module.format(" ".join(["Word"] * 21), "Another")
    assert findings(tmp_path, long) == ["a sentence of 21 words: at most 20"]


def test_tables_and_examples_are_no_sentences(tmp_path: Path) -> None:
    block = "\n".join(["    Word word word word word word"] * 5)
    for module in (f'"""Pods.\n\nThe points:\n\n{block}\n"""\n', f'"""Pods.\n\nExample:\n{block}\n"""\n'):
        assert findings(tmp_path, module) == []


def test_every_rule_has_a_planted_sentence() -> None:
    planted = [sentence for sentence, _ in WORDS]
    assert [pattern.pattern for pattern, _ in RULES.words if not any(pattern.search(each) for each in planted)] == []
    planted = [sentence for sentence, _ in OPENINGS]
    assert [pattern.pattern for pattern, _ in RULES.openings if not any(pattern.search(each) for each in planted)] == []


@pytest.mark.parametrize(
    "module",
    [
        '"""Nodes, of\nwhich two are free."""\n',
        "# Nodes, of\n# which two are free.\nX = 1\n",
        "#: Nodes, of\n#: which two are free.\nX = 1\n",
    ],
    ids=["docstring", "comment", "comment-of-a-value"],
)
def test_a_phrase_that_is_broken_over_two_lines_is_found(tmp_path: Path, module: str) -> None:
    assert findings(tmp_path, module) == ["\"of which\": two sentences, or 'whose'"]


def test_the_finding_names_the_line() -> None:
    prose = PROSE.Prose(7, "One line.\n\nNodes, of which two are free.", docstring=True)
    assert [line for line, _ in RULES.broken_by(prose)] == [9]


@pytest.mark.parametrize(
    "module",
    [
        '"""The attribute `somebody` is a name."""\n',
        "X = 1  # noqa: BLE001\n",
        "somebody = 1\n",
        'X = "of which"\n',
    ],
    ids=["backticks", "directive", "identifier", "no-sentence"],
)
def test_code_is_no_prose(tmp_path: Path, module: str) -> None:
    assert findings(tmp_path, module) == []


def test_a_long_sentence_of_a_document_is_found_but_in_tables_and_regions(tmp_path: Path) -> None:
    long = f"The scheduler {'very ' * 20}slowly places pods."
    written = f"<!-- figures: speed -->\n{long}\n<!-- end of figures -->"
    assert findings(tmp_path, f"# Pods\n\n| {long} |\n\n{written}\n", "docs/pods.md") == []
    assert findings(tmp_path, f"# Pods\n\n{long}\n", "docs/pods.md") == ["a sentence of 25 words: at most 20"]


def test_a_fenced_block_of_a_document_is_no_prose(tmp_path: Path) -> None:
    assert findings(tmp_path, "# Pods\n\n```\nsomebody\n```\n\nSomebody waits.\n", "docs/pods.md") == [
        '"Somebody": name the caller, the plugin, the user'
    ]


# --- sections ----------------------------------------------------------------------------------------------------------------------

SECTIONS = {
    "Args": "Args:\n        pods: number of pods.\n        nodes: number of nodes.",
    "Returns": "Returns:\n        The lower number.",
    "Raises": "Raises:\n        ValueError: both are 0.",
}


def sectioned(*sections: str) -> str:
    """A function that needs all sections, with these."""
    docstring = "\n\n    ".join(["Count.", *(SECTIONS[each] for each in sections)])
    body = 'if not pods + nodes:\n        raise ValueError("none")\n    return min(pods, nodes)'
    return f'def lowest(pods: int, nodes: int) -> int:\n    """{docstring}\n    """\n    {body}\n'


def test_a_function_with_all_its_sections_lacks_none(tmp_path: Path) -> None:
    assert findings(tmp_path, sectioned(*SECTIONS)) == []


@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_that_a_function_needs_and_lacks_is_found(tmp_path: Path, section: str) -> None:
    there = [each for each in SECTIONS if each != section]
    assert findings(tmp_path, sectioned(*there)) == [f"lowest needs {section} in its docstring"]


def test_a_room_that_is_not_listed_needs_no_sections(tmp_path: Path) -> None:
    assert findings(tmp_path, sectioned(), "operator/other/module.py") == []


def lacking(source: str) -> set[str]:
    """The sections that the first function of a source lacks."""
    return set(PROSE.lacking_sections(next(PROSE.public_functions(ast.parse(dedent(source))))))


@pytest.mark.parametrize(
    ("source", "sections"),
    [
        ('def f(a):\n    """Do."""', set()),
        ('def f(a, b):\n    """Do."""', {"Args"}),
        ('def f(a, *, b):\n    """Do."""', {"Args"}),
        ('def f(a, b) -> int:\n    """Count."""', {"Args", "Returns"}),
        ('def f(a, b) -> int:\n    """Return a count."""', {"Args"}),
        ('async def f(a, b) -> int:\n    """Count."""', {"Args", "Returns"}),
        ('class C:\n    def f(self, a):\n        """Do."""', set()),
        ('class C:\n    def f(self, a, b):\n        """Do."""', {"Args"}),
        ('class C:\n    def f(self, a, b):\n        """Implements `D.f`: does nothing."""', set()),
        ('def f(a):\n    """Do."""\n    if a:\n        raise ValueError("a")', {"Raises"}),
        ('def f(a):\n    """Do."""\n    try:\n        a()\n    except ValueError:\n        raise', set()),
        ('def f(a):\n    """Do."""\n    def g():\n        raise ValueError("a")\n    g()', set()),
        ('def f(a):\n    """Do."""\n    raise NotImplementedError("a")', set()),
    ],
)  # fmt: skip
def test_the_sections_that_a_function_lacks_follow_from_its_size(source: str, sections: set[str]) -> None:
    assert lacking(source) == sections


@pytest.mark.parametrize("source", ["def _f(a, b):\n    ...", "class _C:\n    def f(self, a, b):\n        ..."])
def test_private_functions_need_no_sections(source: str) -> None:
    assert list(PROSE.public_functions(ast.parse(source))) == []


# --- exceptions ----------------------------------------------------------------------------------------------------------------------


def tree(path: Path, *exceptions: dict[str, str], besides: Sequence[dict[str, str]] = ()) -> list[str]:
    """The findings in a checkout with one room, where one message is excused."""
    module = path / "operator" / "package" / "room" / "module.py"
    module.parent.mkdir(parents=True)
    for folder in (module.parent, module.parent.parent):
        (folder / "__init__.py").write_text('"""A package."""\n')
    module.write_text('"""A room."""\n\nMESSAGE = "0 of the nodes, of which none fits"  # why it is so\n')
    rules = PROSE.Rules(RULES.words, RULES.openings, list(exceptions), list(besides), ["operator/package/room"], [], [])
    return [str(finding) for finding in PROSE.check(path, rules)]


EXCUSED = {"file": "operator/package/room/module.py", "text": "of which", "reason": "kube-scheduler's message, word for word"}


def test_an_exception_excuses_its_finding_and_no_other(tmp_path: Path) -> None:
    assert tree(tmp_path / "without") == ["operator/package/room/module.py:3: \"of which\": two sentences, or 'whose'"]
    assert tree(tmp_path / "with", EXCUSED) == []


def test_an_exception_that_excuses_nothing_is_found(tmp_path: Path) -> None:
    idle = EXCUSED | {"text": "somebody"}
    [finding] = tree(tmp_path, EXCUSED, idle)
    assert "the exception for operator/package/room/module.py excuses nothing any more" in finding


def test_a_file_may_be_left_out_until_it_would_pass(tmp_path: Path) -> None:
    beside = {"file": EXCUSED["file"], "reason": "its words are being rewritten"}
    assert tree(tmp_path / "left out", besides=[beside]) == []
    assert "excuses nothing any more" in tree(tmp_path / "not there", EXCUSED, besides=[beside | {"file": "docs/gone.md"}])[0]
