"""Arguments of DomainLimit: the limits of a profile. A pod states limits of its own in the same fields.

A pod's limits stand in the annotation `placewright.dev/domain-limits`. Its text is a JSON list of limits with the fields of the profile's
limits. `namespaces` is missing, because a pod counts pods of its own namespace. The usual case has a short form:

    2 per kubernetes.io/hostname of app
    1 per topology.kubernetes.io/zone of app+tier preferred, 4 per example.com/rack of app

`of app` counts the pods that have the label `app` with the pod's own value. The user of the pod, or an admission policy, writes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Final, Literal

import msgspec

from placewright.api.annotations import DOMAIN_LIMITS
from placewright.api.bad_input import in_json, printable
from placewright.api.decode import DECODE_ERRORS
from placewright.api.objects import LabelSelector, Requirement
from placewright.api.selectors import SelectorError, compile_label_selector
from placewright.framework.constraints import Problem, not_empty, within

REQUIRED: Final = "Required"
PREFERRED: Final = "Preferred"
#: No domain holds more pods; the bound keeps sums within int64.
_MOST_PODS: Final = 1_000_000
#: Most limits of a profile. Each limit that selects a pod costs its decision about as much as a spread constraint.
_MOST_LIMITS: Final = 32
_MOST_NAMESPACES: Final = 256
_A_LABEL: Final = "the key of a label"


class LimitSelector(LabelSelector, frozen=True, forbid_unknown_fields=True):
    """A label selector that refuses misspelt fields, because without them it would pick every pod."""


class StatedLimit(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """One limit as it is written.

    Attributes:
        selector: pods that count, in the pod's own namespace; an empty selector picks all.
        match_label_keys: pod labels; only pods with the pod's own values of them count, so that each application counts by itself.
        topology_key: a node label; the nodes that share its value are one domain.
        max: most pods in a domain.
        mode: Required keeps the pod out of full domains, Preferred only prefers others.
    """

    selector: LimitSelector
    match_label_keys: tuple[str, ...] = ()
    topology_key: Annotated[str, not_empty("the key of a node label")]
    max: Annotated[int, within(1, _MOST_PODS)]
    mode: Literal["Required", "Preferred"] = REQUIRED


class ProfileLimit(StatedLimit, frozen=True, kw_only=True):
    """A limit for all pods of a profile that its selector picks.

    Attributes:
        namespaces: namespaces whose pods the limit holds for and counts together; empty: each namespace by itself.
    """

    namespaces: tuple[str, ...] = ()


class DomainLimitArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Limits for the pods that selectors pick, by domains of a node label. Pods may state limits of their own in addition."""

    limits: tuple[ProfileLimit, ...] = ()

    def validate(self) -> list[Problem]:
        """Check the selectors, the keys of labels, and the numbers of limits and namespaces."""
        if len(self.limits) > _MOST_LIMITS:
            return [("limits", f"{len(self.limits)} limits", f"at most {_MOST_LIMITS}")]
        problems = [problem for i, limit in enumerate(self.limits) for problem in problems_of(limit, f"limits[{i}]")]
        for i, limit in enumerate(self.limits):
            if len(limit.namespaces) > _MOST_NAMESPACES:
                problems.append((f"limits[{i}].namespaces", f"{len(limit.namespaces)} namespaces", f"at most {_MOST_NAMESPACES}"))
        return problems


def problems_of(limit: StatedLimit, path: str) -> Iterator[Problem]:
    """Check a limit at `path` beyond the types of its fields. Yield path, value found, and values allowed."""
    if not 1 <= limit.max <= _MOST_PODS:
        yield f"{path}.max", str(limit.max), f"1 to {_MOST_PODS}"
    if not _is_label_key(limit.topology_key):
        yield f"{path}.topologyKey", in_json(limit.topology_key), _A_LABEL
    for i, key in enumerate(limit.match_label_keys):
        if not _is_label_key(key):
            yield f"{path}.matchLabelKeys[{i}]", in_json(key), _A_LABEL
    try:
        compile_label_selector(limit.selector)
    except SelectorError as problem:
        yield f"{path}.selector", str(problem), "a label selector, as in a Deployment"


def _is_label_key(key: str) -> bool:
    try:
        compile_label_selector(LabelSelector(match_expressions=(Requirement(key=key, operator="Exists"),)))
    except SelectorError:
        return False
    return True


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
