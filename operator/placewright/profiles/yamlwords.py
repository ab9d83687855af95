"""What PyYAML says of text that is no YAML, in words for people who do not know its tokens: what was found, and what is allowed."""

from __future__ import annotations

import re
from typing import Final

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
        (r"undefined alias '(?P<name>.+)'", "the alias *{name}", "an alias of an anchor (&{name}) that stands before it"),
        (r"unknown escape character '(?P<char>.+)'", "'\\{char}' in double quotes", "'\\\\' for a backslash, or single quotes"),
        (r"^the key .* a second time$", "{whole}", "each key once"),
        (r"sequence entries are not allowed", "a list's item ('-') where none can be", "lists in lines of their own, below the name"),
    )
)


def in_words(problem: str) -> tuple[str, str]:
    """What was found and what is allowed, of the parser's `problem`."""
    for pattern, found, allowed in _SAID:
        if said := pattern.search(problem):
            whole = said[0]
            named = {name: _TOKENS.get(value, f"'{value}'") if name == "token" else value for name, value in said.groupdict().items()}
            return found.format(**named, whole=whole), allowed.format(**named)
    for token, words in _TOKENS.items():
        if token.startswith("<"):
            problem = problem.replace(f"'{token}'", words).replace(token, words)
    return problem, "YAML"
