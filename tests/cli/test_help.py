"""`--help` of every command: a first sentence, two examples that are taken, and letters that mean one thing everywhere."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator

import pytest

from placewright.cli import helptexts
from placewright.cli.helptexts import subcommands
from placewright.cli.main import OWN_COMMANDS, commands, main, make_parser
from placewright_console.commands import console
from placewright_lab.commands import helptexts as labs

TEXTS = {**helptexts.TEXTS, **console.TEXTS, **labs.TEXTS}
#: The only meaning of each letter: the long name beside it.
LETTERS = {"-h": "--help", "-o": "--output", "-f": "--file", "-n": "--namespace", "-q": "--quiet", "-v": "--v"}
FORMATS = {"table", "wide", "json", "yaml", "markdown", "text", "github", "sarif"}


def walk(parser: argparse.ArgumentParser, path: str = "") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for name, each in subcommands(parser):
        yield f"{path} {name}".lstrip(), each
        yield from walk(each, f"{path} {name}".lstrip())


PARSERS = dict(walk(make_parser()))


def words_of(example: str) -> list[str]:
    """What an example gives to `placewright`, word by word."""
    command = next(part for part in example.partition(" # ")[0].split("|") if "placewright" in part)
    words = shlex.split(command.partition(">")[0])
    return words[words.index("placewright") + 1 :]


def shown(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [each for each in parser._actions if each.help != argparse.SUPPRESS]


def test_all_commands_are_walked_over() -> None:
    assert set(commands()) <= set(PARSERS)
    assert {"profiles list", "bench decisions"} <= set(PARSERS)


def test_the_operator_has_the_texts_of_its_own_commands_alone() -> None:
    assert {path.partition(" ")[0] for path in helptexts.TEXTS} == set(OWN_COMMANDS)
    assert {path.partition(" ")[0] for path in {**console.TEXTS, **labs.TEXTS}} == set(commands()) - set(OWN_COMMANDS)


def test_no_text_is_of_a_command_that_there_is_not() -> None:
    assert set(TEXTS) <= set(PARSERS)


@pytest.mark.parametrize("path", PARSERS)
def test_help_begins_with_a_sentence_and_ends_with_two_examples(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*path.split(), "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    paragraphs = text.split("\n\n")
    sentence = paragraphs[1]
    assert sentence[0].isupper() and sentence.rstrip().endswith("."), sentence
    head, _, examples = text.partition("\nexamples:\n")
    assert examples, head
    lines = examples.rstrip("\n").splitlines()
    assert len(lines) >= 2 and all(line.startswith("  ") for line in lines)
    assert [line.strip() for line in lines] == list(TEXTS[path].examples), "as the examples are tried below"


@pytest.mark.parametrize(("path", "example"), [(path, example) for path, text in TEXTS.items() for example in text.examples])
def test_an_example_is_taken_by_the_command_that_it_is_of(path: str, example: str) -> None:
    words = words_of(example)
    assert words[: len(path.split())] == path.split()
    parsed = make_parser(words).parse_args(words)
    assert callable(parsed.main)


@pytest.mark.parametrize("path", PARSERS)
def test_a_letter_means_the_same_everywhere(path: str) -> None:
    for action in shown(PARSERS[path]):
        for letter in (each for each in action.option_strings if not each.startswith("--")):
            assert LETTERS.get(letter) in action.option_strings, f"{path} {letter}"
            if letter == "-o":
                assert set(action.choices or ()) and set(action.choices or ()) <= FORMATS
            if letter == "-n":
                assert "pod" in str(action.help)
            if letter == "-f":
                assert "manifests" in str(action.help) and action.metavar == "FILE"


@pytest.mark.parametrize("path", PARSERS)
def test_a_format_has_its_letter_and_the_operator_s_namespace_its_name(path: str) -> None:
    for action in shown(PARSERS[path]):
        if "--output" in action.option_strings:
            assert "-o" in action.option_strings
        if "operator runs" in str(action.help):
            assert action.option_strings == ["--operator-namespace"]


@pytest.mark.parametrize("path", PARSERS)
def test_every_option_says_what_it_is(path: str) -> None:
    for action in shown(PARSERS[path]):
        if not isinstance(action, argparse._SubParsersAction):
            assert action.help, f"{path} {action.option_strings or action.dest}"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (("snapshot", "-o", "a.gz"), ("snapshot", "--write", "a.gz")),
        (("snapshot", "--output", "a.gz"), ("snapshot", "--write", "a.gz")),
        (("record", "-o", "a.gz"), ("record", "--write", "a.gz")),
        (("profiles", "list", "-n", "ours"), ("profiles", "list", "--operator-namespace", "ours")),
        (("profiles", "history", "a", "--namespace", "ours"), ("profiles", "history", "a", "--operator-namespace", "ours")),
    ],
)
def test_what_was_written_before_is_taken_still(old: tuple[str, ...], new: tuple[str, ...]) -> None:
    before, after = (vars(make_parser(words).parse_args(words)) for words in (old, new))
    assert before == after


def test_what_is_taken_still_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["snapshot", "--help"])
    assert "-o" not in capsys.readouterr().out.split()


def test_the_defaults_are_those_of_the_new_names() -> None:
    assert make_parser(["snapshot"]).parse_args(["snapshot"]).output is None
    assert make_parser(["profiles"]).parse_args(["profiles", "list"]).namespace == "placewright-system"
