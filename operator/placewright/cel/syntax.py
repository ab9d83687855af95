"""Reads CEL expressions as tokens and brackets. That is enough to bound their cost and to respell them.

The library that evaluates (docs/decisions/0012) exposes no tree, estimates no cost and cannot be interrupted. So expressions are read here
first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

#: Characters of an expression; API servers accept no longer one (CELSelectorExpressionMaxLength).
LONGEST: Final = 10 * 1024
MOST_TOKENS: Final = 2_000
DEEPEST: Final = 40

_TOKEN: Final = re.compile(
    r"""(?P<blank>\s+|//[^\n]*)
      | (?P<text>(?:[rR][bB]?|[bB][rR]?)?(?:'''(?:\\.|[^\\])*?'''|\"\"\"(?:\\.|[^\\])*?\"\"\"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))
      | (?P<number>0[xX][0-9a-fA-F]+[uU]?|\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?|\d+[uU]?)
      | (?P<name>[A-Za-z_]\w*)
      | (?P<sign>&&|\|\||[=!<>]=|\.\?|\[\?|[-+*/%<>=!?:.,()\[\]{}])
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_OPENING: Final = re.compile(r"""(?P<prefix>[rRbB]*)(?P<quote>\'\'\'|\"\"\"|"|\')""")
_ESCAPE: Final = re.compile(r"\\(?:[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2}|.|$)", re.DOTALL)
_SHORT_ESCAPES: Final = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "?": "?", '"': '"', "'": "'", "`": "`",
}  # fmt: skip
_CLOSING: Final = {"(": ")", "[": "]", "{": "}"}


#: A part of an expression.
Item: TypeAlias = "Token | Brackets"


class ExpressionError(ValueError):
    """An expression cannot be evaluated, or its evaluation failed. The message gives the reason in one line."""


@dataclass(slots=True)
class Token:
    """One token, as written.

    Attributes:
        kind: `text`, `number`, `name` or `sign`.
        text: text in the source.
    """

    kind: str
    text: str


@dataclass(slots=True)
class Brackets:
    """The items between two brackets. The outermost ones, of the whole expression, have an empty `opening`."""

    opening: str
    items: list[Item] = field(default_factory=list)

    @property
    def arguments(self) -> list[list[Item]]:
        """The items between commas."""
        parts: list[list[Item]] = [[]]
        for item in self.items:
            if is_sign(item, ","):
                parts.append([])
            else:
                parts[-1].append(item)
        return parts


def is_sign(item: Item | None, text: str) -> bool:
    """Return whether an item is this operator or punctuation mark."""
    return isinstance(item, Token) and item.kind == "sign" and item.text == text


def name_of(item: Item | None) -> str:
    """Return the name of an item; empty for any other item."""
    return item.text if isinstance(item, Token) and item.kind == "name" else ""


def is_brackets(item: Item | None, opening: str) -> bool:
    """Return whether an item is brackets with this opening."""
    return isinstance(item, Brackets) and item.opening == opening


def at(items: Sequence[Item], position: int) -> Item | None:
    """Return the item at a position; None beyond either end."""
    return items[position] if 0 <= position < len(items) else None


def tokens(source: str) -> list[Token]:
    """Cut an expression into tokens, without blanks and comments.

    Raises:
        ExpressionError: it is too long, or has a character that begins no token.
    """
    if len(source) > LONGEST:
        raise ExpressionError(f"is {len(source)} characters long, at most {LONGEST} are allowed")
    found: list[Token] = []
    position = 0
    while position < len(source):
        match = _TOKEN.match(source, position)
        if match is None:
            raise ExpressionError(f"does not compile: unexpected {source[position]!r} at character {position + 1}")
        position = match.end()
        if match.lastgroup != "blank":
            found.append(Token(str(match.lastgroup), match.group()))
    if len(found) > MOST_TOKENS:
        raise ExpressionError(f"consists of {len(found)} tokens, this scheduler evaluates at most {MOST_TOKENS}")
    return found


def unescaped(literal: Token) -> str:
    """Undo the escapes of a text literal.

    Raises:
        ExpressionError: the literal is of bytes, or has an unknown escape.
    """
    opening = _OPENING.match(literal.text)
    assert opening is not None, "a token of kind text begins like that"
    prefix, quote = opening["prefix"].lower(), opening["quote"]
    if "b" in prefix:
        raise ExpressionError("bytes are not text")
    inside = literal.text[opening.end() : len(literal.text) - len(quote)]
    return inside if "r" in prefix else _ESCAPE.sub(_meant, inside)


def _meant(escape: re.Match[str]) -> str:
    text = escape.group()
    short = _SHORT_ESCAPES.get(text[1:])
    if short is not None:
        return short
    base, digits = (16, text[2:]) if text[1:2] in "xXuU" else (8, text[1:])
    try:
        return chr(int(digits, base))
    except (ValueError, OverflowError):
        raise ExpressionError(f"does not compile: {text} is no escape") from None


def tree(source: str) -> Brackets:
    """Read an expression and match its brackets.

    Raises:
        ExpressionError: it is too long or too deep, its brackets do not match, or it uses optional fields.
    """
    stack = [Brackets("")]
    for token in tokens(source):
        if token.kind == "sign" and token.text in (".?", "[?"):
            raise ExpressionError(f"optional fields ({token.text}) are not supported; ask has(...) first")
        if token.kind == "sign" and token.text in _CLOSING:
            stack.append(Brackets(token.text))
            stack[-2].items.append(stack[-1])
            if len(stack) > DEEPEST:
                raise ExpressionError(f"nests brackets deeper than {DEEPEST}")
        elif token.kind == "sign" and token.text in _CLOSING.values():
            if _CLOSING.get(stack[-1].opening) != token.text:
                raise ExpressionError(f"does not compile: unexpected {token.text!r}")
            stack.pop()
        else:
            stack[-1].items.append(token)
    if len(stack) > 1:
        raise ExpressionError(f"does not compile: {stack[-1].opening!r} is never closed")
    return stack[0]


def walk(brackets: Brackets) -> Iterator[Brackets]:
    """Visit these brackets and all brackets within them.

    Yields:
        Brackets, the outer before the inner.
    """
    yield brackets
    for item in brackets.items:
        if isinstance(item, Brackets):
            yield from walk(item)


def spelt(items: Sequence[Item]) -> str:
    """Write items as source text."""
    return " ".join(item.text if isinstance(item, Token) else _enclosed(item) for item in items)


def _enclosed(brackets: Brackets) -> str:
    return f"{brackets.opening}{spelt(brackets.items)}{_CLOSING.get(brackets.opening, '')}"
