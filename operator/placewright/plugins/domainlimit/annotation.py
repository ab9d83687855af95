"""The limits that a pod states itself, in the annotation `placewright.dev/domain-limits`.

Its text is a JSON list of limits with the fields of the profile's limits. `namespaces` is missing, because a pod counts pods of its own
namespace.
The usual case has a short form:

    2 per kubernetes.io/hostname of app
    1 per topology.kubernetes.io/zone of app+tier preferred, 4 per example.com/rack of app

`of app` counts the pods that have the label `app` with the pod's own value. The user of the pod, or an admission policy, writes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal

import msgspec

from placewright.api.annotations import DOMAIN_LIMITS
from placewright.api.bad_input import in_json, printable
from placewright.api.decode import DECODE_ERRORS
from placewright.api.objects import Requirement
from placewright.plugins.domainlimit.args import PREFERRED, REQUIRED, LimitSelector, StatedLimit, problems_of

#: Most characters of the text. A longer one is not read, which bounds the requirements and values of its selectors.
LONGEST_TEXT: Final = 4096
#: Most limits of a pod. Each one costs a decision as much as a spread constraint.
MOST_LIMITS: Final = 8
_LONGEST_SHOWN: Final = 200
_SHORT: Final = re.compile(r"(?P<max>[0-9]{1,7}) per (?P<key>[^\s,]+) of (?P<labels>[^\s,]+)(?P<preferred> preferred)?", re.ASCII)
_ALLOWED: Final = 'a JSON list of limits, or as in "2 per kubernetes.io/hostname of app"'
_decoder: Final = msgspec.json.Decoder(tuple[StatedLimit, ...])


class DomainLimitError(ValueError):
    """The annotation of a pod is invalid. The message is one line: the annotation, the value found, and the values allowed."""

    def __init__(self, text: str) -> None:
        line = printable(text)
        line = line if len(line) <= _LONGEST_SHOWN else f"{line[:_LONGEST_SHOWN]}..."
        super().__init__(f"annotation {DOMAIN_LIMITS}: {line}")


def read_limits(text: str) -> tuple[StatedLimit, ...]:
    """Read the annotation's text, JSON or the short form: at least one limit.

    Raises:
        DomainLimitError: the text is neither, a limit breaks a rule, or there are too many.
    """
    if len(text) > LONGEST_TEXT:
        raise DomainLimitError(f"found {len(text)} characters; allowed at most {LONGEST_TEXT}")
    limits = _in_json(text) if text.lstrip().startswith(("[", "{")) else tuple(_in_short(text))
    if not 1 <= len(limits) <= MOST_LIMITS:
        raise DomainLimitError(f"found {len(limits)} limits; allowed 1 to {MOST_LIMITS}")
    for i, limit in enumerate(limits):
        for path, found, allowed in problems_of(limit, f"[{i}]"):
            raise DomainLimitError(f"{path}: found {found}; allowed {allowed}")
    return limits


def write_limits(limits: tuple[StatedLimit, ...]) -> str:
    """Encode limits as JSON, for callers that change an annotation."""
    return msgspec.json.encode(limits).decode()


def _in_json(text: str) -> tuple[StatedLimit, ...]:
    try:
        return _decoder.decode(text)
    except (*DECODE_ERRORS, UnicodeEncodeError) as problem:
        raise DomainLimitError(f"{problem}; allowed {_ALLOWED}") from None


def _in_short(text: str) -> Iterator[StatedLimit]:
    for part in text.split(","):
        found = _SHORT.fullmatch(part.strip())
        if found is None:
            raise DomainLimitError(f"found {in_json(part.strip())}; allowed {_ALLOWED}")
        labels = tuple(found["labels"].split("+"))
        mode: Literal["Required", "Preferred"] = PREFERRED if found["preferred"] else REQUIRED
        # A pod without one of the labels is not selected by its own selector, which is an error.
        selector = LimitSelector(match_expressions=tuple(Requirement(key=label, operator="Exists") for label in labels))
        yield StatedLimit(selector=selector, match_label_keys=labels, topology_key=found["key"], max=int(found["max"]), mode=mode)
