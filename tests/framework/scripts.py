"""Plugins in a few words: `Script("A").pre_filters(SKIP).filters({"b": unschedulable("small")}).scores({"a": 7})`.

A script answers as it was told, each answer a value, an exception to raise, or a function of what was asked; it can be told anew at any
time. It notes how it is called. Nodes are named, so that tests speak of nodes and not of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from framework.makers import Scene
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import (
    BindPlugin,
    CycleState,
    Diagnosis,
    FilterPlugin,
    MaxNormalised,
    PermitPlugin,
    PermitResult,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Reads,
    Rejection,
    ReservePlugin,
    Rows,
    ScorePlugin,
)
from placewright.framework.rowwise import PlainRowVerdict, RowwiseFilter
from placewright.framework.status import SUCCESS, Code, Status
from placewright.testing import node

#: What a filter says of a node: by name (nodes that are not named fit), or a function of its name and the pods on it.
Verdicts = Mapping[str, Status] | Callable[[str, Collection[PodInfo]], Status]
#: What a score says of a node, likewise (nodes that are not named get 0).
Ratings = Mapping[str, int] | Callable[[str, Collection[PodInfo]], int]
#: One call: the plugin, the method, and the nodes that it was about.
Call = tuple[str, str, tuple[str, ...]]
_ATTEMPT = (CycleState, PodInfo)
#: What each method is asked with, in this order.
ASKED: Mapping[str, tuple[type[Any], ...]] = {
    "pre_enqueue": (PodInfo,), "sign": (PodInfo,), "fingerprint": (CycleState, Cluster),
    **dict.fromkeys(("pre_filter", "judge"), (*_ATTEMPT, Cluster)), "post_filter": (*_ATTEMPT, Cluster, Diagnosis),
    **dict.fromkeys(("filter", "explain", "failure", "pre_score", "score"), (*_ATTEMPT, Cluster, np.ndarray)),
    **dict.fromkeys(("reserve", "unreserve", "permit", "pre_bind", "post_bind"), (*_ATTEMPT, str)), "bind": (*_ATTEMPT, str, dict),
}  # fmt: skip


class Script:
    """One plugin.

    Attributes:
        kind: the plugin's class; another one once it is told of another method.
        told: the answers, by method.
        calls: of this plugin, and of all that share the list, in order.
    """

    def __init__(self, name: str, calls: list[Call] | None = None, reads: Reads = Reads.NODE) -> None:
        self.name = name
        self.calls: list[Call] = [] if calls is None else calls
        self.told: dict[str, Any] = {}
        self._bases: dict[type[Plugin], None] = {}
        self._written: dict[str, Any] = {"name": name, "reads": reads, "__module__": "somebodys.plugins"}
        self._kind: type[Plugin] | None = None

    # --- what it does ----------------------------------------------------------------------------------------------------------

    def pre_enqueues(self, answer: Any = SUCCESS) -> Self:
        return self._answers(PreEnqueuePlugin, "pre_enqueue", answer)

    def pre_filters(self, answer: Any = SUCCESS, *, nodes: str | None = None) -> Self:
        """`nodes`: the names to look at, as words."""
        if isinstance(answer, Status):
            answer = PreFilterResult(answer, None if nodes is None else frozenset(nodes.split()))  # type: ignore[arg-type]
        return self._answers(PreFilterPlugin, "pre_filter", answer)

    def filters(self, verdicts: Verdicts | None = None, *, apart: bool | None = None) -> Self:
        """`apart`: it is a `RowwiseFilter`, whose judge is there, or is None."""
        self.told["verdict"] = verdicts or {}
        base = FilterPlugin if apart is None else RowwiseFilter
        if apart is not None:
            self._answers(base, "judge", lambda *asked: PlainRowVerdict(self._own, *asked) if apart else None)
        return self._answers(base, "filter", self._passes)._answers(base, "explain", self._rejections)

    def post_filters(self, answer: Any) -> Self:
        return self._answers(PostFilterPlugin, "post_filter", PostFilterResult(answer) if isinstance(answer, Status) else answer)

    def pre_scores(self, answer: Any = SUCCESS) -> Self:
        return self._answers(PreScorePlugin, "pre_score", answer)

    def scores(self, ratings: Ratings | None = None, *, scaled: bool = False, reverse: bool = False) -> Self:
        """`scaled`: by the highest; `reverse`: less is better."""
        self.told["rating"] = ratings or {}
        self._written["reverse"] = reverse
        if scaled or reverse:
            self._bases[MaxNormalised] = None
        return self._answers(ScorePlugin, "score", self._ratings)

    def reserves(self, answer: Any = SUCCESS, unreserve: Any = None) -> Self:
        return self._answers(ReservePlugin, "reserve", answer)._answers(ReservePlugin, "unreserve", unreserve)

    def permits(self, answer: Any = SUCCESS, timeout: float = 0.0) -> Self:
        return self._answers(PermitPlugin, "permit", PermitResult(answer, timeout) if isinstance(answer, Status) else answer)

    def pre_binds(self, answer: Any = SUCCESS) -> Self:
        return self._answers(PreBindPlugin, "pre_bind", answer, awaited=True)

    def binds(self, answer: Any = SUCCESS) -> Self:
        return self._answers(BindPlugin, "bind", answer, awaited=True)

    def post_binds(self, answer: Any = None) -> Self:
        return self._answers(PostBindPlugin, "post_bind", answer)

    # --- what its columns depend on --------------------------------------------------------------------------------------------

    def signs(self, signature: Hashable | Callable[[PodInfo], Hashable]) -> Self:
        return self._answers(Plugin, "sign", signature, noted=False)

    def fingerprints(self, fingerprint: Hashable | Callable[..., Hashable]) -> Self:
        return self._answers(Plugin, "fingerprint", fingerprint, noted=False)

    def says(self, method: str, answer: Any) -> Self:
        """What it answers to a method that belongs to no point."""
        return self._answers(Plugin, method, answer)

    def writing(self, **members: Any) -> Self:
        """With members of the class as they are."""
        self._written |= members
        self._kind = None
        return self

    # --- the class -------------------------------------------------------------------------------------------------------------

    @property
    def kind(self) -> type[Plugin]:
        if self._kind is None:
            bases = [base for base in self._bases if not any(base in other.__mro__[1:] for other in self._bases)]
            self._kind = type(self.name, tuple(bases) or (Plugin,), self._written)
        return self._kind

    def asked(self, method: str) -> list[tuple[str, ...]]:
        """The nodes of each call of this plugin's method so far."""
        return [nodes for plugin, called, nodes in self.calls if (plugin, called) == (self.name, method)]

    def _answers(self, base: type[Plugin], method: str, answer: Any, *, awaited: bool = False, noted: bool = True) -> Self:
        def said(_plugin: Plugin, *asked: Any) -> Any:
            assert len(asked) == len(ASKED[method]), method
            assert all(isinstance(each, kind) for each, kind in zip(asked, ASKED[method], strict=True)), method
            if noted:
                self.calls.append((self.name, method, _nodes_of(asked)))
            told = self.told[method]
            if isinstance(told, BaseException):
                raise told
            return told(*asked) if callable(told) else told

        async def said_later(plugin: Plugin, *asked: Any) -> Any:
            return said(plugin, *asked)

        self._bases[base] = self._kind = None
        self.told[method] = answer
        self._written[method] = said_later if awaited else said
        return self

    @property
    def _own(self) -> FilterPlugin:
        """This filter outside of any profile, for its judge to ask."""
        return self.kind(None, None)  # type: ignore[return-value, arg-type]

    def _passes(self, _state: Any, _pod: PodInfo, cluster: Cluster, rows: Rows) -> Any:
        return np.array([verdict.ok for verdict in self._verdicts(cluster, rows)], np.bool_)

    def _rejections(self, _state: Any, _pod: PodInfo, cluster: Cluster, rows: Rows) -> list[Rejection]:
        groups: dict[Status, list[int]] = {}
        for verdict, row in zip(self._verdicts(cluster, rows), rows.tolist(), strict=True):
            groups.setdefault(verdict, []).append(row)
        return [Rejection(verdict, np.array(group, np.intp)) for verdict, group in groups.items()]

    def _verdicts(self, cluster: Cluster, rows: Rows) -> list[Status]:
        said = _by_node(self.told["verdict"], cluster, rows, SUCCESS)
        return [Status(Code.SUCCESS) if verdict is None else verdict for verdict in said]

    def _ratings(self, _state: Any, _pod: PodInfo, cluster: Cluster, rows: Rows) -> Any:
        return np.array(_by_node(self.told["rating"], cluster, rows, 0), np.int64)


def _by_node(told: Any, cluster: Cluster, rows: Rows, otherwise: Any) -> list[Any]:
    known = [cluster.names[row] for row in rows.tolist()]
    if callable(told):
        return [otherwise if name is None else told(name, tuple(cluster.pods_on(name))) for name in known]
    return [told.get(name, otherwise) for name in known]


def _nodes_of(asked: Sequence[Any]) -> tuple[str, ...]:
    """The nodes that a call is about: the name that comes last, or the rows that do."""
    last = asked[-1]
    if isinstance(last, str):
        return (last,)
    cluster = next((each for each in asked if isinstance(each, Cluster)), None)
    if cluster is None or not isinstance(last, np.ndarray):
        return ()
    return tuple(str(cluster.names[row]) for row in last.tolist())


def bare(*scripts: Script, nodes: str = "a b", weights: Mapping[str, int] | None = None, **spec: Any) -> Scene:
    """A profile of these plugins alone, in this order, beside those that every profile needs; `nodes` by name."""
    enabled = [{"name": name} for name in ("PrioritySort", *(script.name for script in scripts))]
    if not any(BindPlugin in script.kind.__mro__ for script in scripts):
        enabled.append({"name": "DefaultBinder"})
    plugins = {"multiPoint": {"disabled": [{"name": "*"}], "enabled": enabled}}
    scene = Scene(extra=tuple(script.kind for script in scripts), spec={"plugins": plugins, "weights": dict(weights or {}), **spec})
    return scene.with_nodes(*(node(name) for name in nodes.split()))
