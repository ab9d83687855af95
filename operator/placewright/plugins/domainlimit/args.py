"""Arguments of DomainLimit: the limits of a profile. A pod states limits of its own in the same fields (see `annotation`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final, Literal

import msgspec

from placewright.api.bad_input import in_json
from placewright.api.objects import LabelSelector, Requirement
from placewright.api.selectors import SelectorError, compile_label_selector
from placewright.framework.constraints import not_empty, within

#: (path inside args, what was found, what is allowed)
Problem = tuple[str, str, str]
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
