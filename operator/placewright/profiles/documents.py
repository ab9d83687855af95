"""Parses files of profiles, and describes text that is no YAML, for people who do not know the parser."""

from __future__ import annotations

import re
from typing import Any, Final

import yaml

from placewright.api.yamldocs import Document, NotPlainError, documents
from placewright.profiles.problem import Problem, ProfileError

#: Characters of a file; a larger one is no profile.
MAX_CHARACTERS: Final = 1_048_576
_LONGEST_PROBLEM: Final = 200
_NAME_AND_VALUE: Final = "'name: value', indented as the fields beside it"
_FIELD_OR_QUOTES: Final = f"{_NAME_AND_VALUE}; text with ': ' in quotes"
_TOKENS: Final = {
    "<block end>": "the end of an indented block",
    "<block mapping start>": "a field that is indented otherwise than those beside it",
    "<block sequence start>": "a list that is indented otherwise than what is beside it",
    "<block entry>": "'-', which begins a list's item",
    "-": "'-', which begins a list's item",
    "<document start>": "'---'",
    "<document end>": "'...'",
    "<stream end>": "the end of the text",
    "<scalar>": "more text",
    "<anchor>": "an anchor (&)",
    "<alias>": "an alias (*)",
    "<tag>": "a tag (!)",
    "?": "a key",
    ":": "':'",
}
_SAID: Final = tuple(
    (re.compile(pattern, re.DOTALL), found, allowed)
    for pattern, found, allowed in (
        (r"mapping values are not allowed", "a ':' too many, or a field that is indented wrongly", _FIELD_OR_QUOTES),
        (r"expected <block end>, but found '?(?P<token>.+?)'?$", "{token}", _NAME_AND_VALUE),
        (r"expected ',' or '(?P<end>[\]}])', but (?:got|found) '?(?P<token>.+?)'?$", "{token}", "',' or '{end}': a bracket is still open"),
        (r"expected the node content, but found '?(?P<token>.+?)'?$", "{token}", "a value"),
        (r"expected '<document start>', but found '?(?P<token>.+?)'?$", "{token}", "one document, or '---' between two"),
        (r"character '\\t' that cannot start", "a tab", "spaces to indent with"),
        (r"character '(?P<char>.+)' that cannot start", "text that begins with '{char}'", "quotes around it"),
        (r"could not find expected ':'", "text without a ':' behind it", _NAME_AND_VALUE),
        (r"unexpected end of stream", "text in quotes that does not end", "a closing quote"),
        (r"unknown escape character '(?P<char>.+)'", "'\\{char}' in double quotes", "'\\\\' for a backslash, or single quotes"),
        (r"sequence entries are not allowed", "a list's item ('-') where none can be", "lists in lines of their own, below the name"),
    )
)


class UnreadableDocument(ProfileError):
    """Text that is no YAML as Kubernetes reads it.

    Attributes:
        line, column: place of the problem, from 1; 0 when it is unknown.
    """

    def __init__(self, found: str, allowed: str, mark: yaml.Mark | None = None) -> None:
        self.line, self.column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        super().__init__([Problem(f"line {self.line}, column {self.column}" if mark else "", found, allowed)])


def parse_documents(text: str) -> list[Any]:
    """Parse all documents of a YAML text that are not empty.

    Raises:
        UnreadableDocument: the text is too large, empty, or no plain YAML; with line and column.
    """
    return [document.value for document in parse_placed(text)]


def parse_placed(text: str) -> list[Document]:
    """Parse all documents, with the place of each value.

    Raises:
        UnreadableDocument: the text is too large, empty, or no plain YAML; with line and column.
    """
    if len(text) > MAX_CHARACTERS:
        raise UnreadableDocument(f"{len(text)} characters", f"at most {MAX_CHARACTERS}")
    try:
        found = list(documents(text, placed=True))
    except NotPlainError as error:
        raise UnreadableDocument(_short(error.found), error.allowed, error.problem_mark) from None
    except yaml.MarkedYAMLError as error:
        raise UnreadableDocument(*_in_words(_short(error.problem)), error.problem_mark) from None
    except (yaml.YAMLError, ValueError) as error:
        raise UnreadableDocument(_short(error), "YAML") from None
    if not found:
        raise UnreadableDocument("an empty document", "a profile")
    return found


def _short(problem: object) -> str:
    """Cut the first line of the parser's message: it may quote the document."""
    (first, *_) = str(problem).splitlines() or ["something else"]
    return first if len(first) <= _LONGEST_PROBLEM else f"{first[:_LONGEST_PROBLEM]}..."


def _in_words(problem: str) -> tuple[str, str]:
    """Translate the parser's message into (found, allowed)."""
    for pattern, found, allowed in _SAID:
        if said := pattern.search(problem):
            named = {name: _TOKENS.get(value, f"'{value}'") if name == "token" else value for name, value in said.groupdict().items()}
            return found.format(**named), allowed.format(**named)
    for token, words in _TOKENS.items():
        if token.startswith("<"):
            problem = problem.replace(f"'{token}'", words).replace(token, words)
    return problem, "YAML"
