"""The HTTP client of one extender: kube-scheduler's calls on the wire, without blocking the scheduler.

Each call has one deadline for the objects that are sent, the connection and the answer. Every failure is one `ExtenderError`, in
kube-scheduler's words if it has any. The scheduler decides what follows: the pod waits, or goes on without an `ignorable` extender.

An answer has no more elements than the question and the cluster's nodes account for. A large answer is read in a thread of its extender's
own, so that the event loop goes on.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final, TypeVar

from placewright.api.extenders import MAX_EXTENDER_SCORE, ExtenderError, ExtenderSettings, Filtered, NodeVictims
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.kube.extenders.connection import ExtenderConnection
from placewright.kube.extenders.messages import (
    AnswerRoom,
    BadAnswer,
    FilterAnswer,
    MetaVictims,
    bind_request,
    node_request,
    preempt_request,
    read_error,
    read_filter,
    read_scores,
    read_victims,
)
from placewright.kube.extenders.tls import tls_context
from placewright.kube.fullobjects import FullObjects

T = TypeVar("T")
PodsOn = Callable[[NodeName], Iterable[PodInfo]]

#: Largest score that is accepted: a larger one, times the highest weight and the scale, could overflow the 64 bits of a total.
_LARGEST_SCORE: Final = 2**31
#: Bytes of an answer that take about a millisecond to read; a larger one is read in a thread.
_READ_AT_ONCE: Final = 2**16
#: Pods that are read at the same time for one extender.
_READING_AT_ONCE: Final = 16


@dataclass(eq=False)
class HttpExtender:
    """Calls one extender; implements the port `Extender`. It can be opened again after it was closed.

    Making one reads the TLS files. It raises `InputError` if a file cannot be used; the message begins with the path of the field.

    Attributes:
        settings: the profile's entry for it.
        objects: whole pods and nodes to send.
        environ: names proxies, as for kube-scheduler.
        nodes: number of nodes in the cluster, for the bound on answers.
    """

    settings: ExtenderSettings
    objects: FullObjects
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    nodes: Callable[[], int] = lambda: 0

    def __post_init__(self) -> None:
        self._tls = tls_context(self.settings)
        self._sends_nodes = not self.settings.node_cache_capable and bool(self.settings.filter_verb or self.settings.prioritize_verb)
        self._connection: ExtenderConnection | None = None
        self._reader: ThreadPoolExecutor | None = None
        self._readers = asyncio.Semaphore(_READING_AT_ONCE)

    def open(self) -> None:
        """Get ready for calls; needs a running event loop. An extender that is sent whole nodes makes us keep a copy of all nodes."""
        if self._connection is not None:
            return
        settings = self.settings
        self._connection = ExtenderConnection(settings.url_prefix, self._tls, settings.tls_config.server_name, self.environ)
        if self._sends_nodes:
            self.objects.follow_nodes()

    async def close(self) -> None:
        """Close its connections. Calls under way fail."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        await connection.close()
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.shutdown(wait=False)  # calls whose answer is being read still get it
        if self._sends_nodes:
            await self.objects.leave_nodes()

    async def filter(self, pod: PodInfo, nodes: Sequence[NodeName]) -> Filtered:
        """Ask which of the nodes can hold the pod.

        Returns:
            The nodes that it kept, and its reasons for the others.

        Raises:
            ExtenderError: the call failed, or the answer names a node that was not asked about.
        """
        answer = await self._call(self.settings.filter_verb, lambda: self._about_nodes(pod, nodes), read_filter)
        if answer.error:
            raise ExtenderError(answer.error)
        return Filtered(self._kept(answer, set(nodes)), answer.failed, answer.unresolvable)

    async def prioritize(self, pod: PodInfo, nodes: Sequence[NodeName]) -> dict[NodeName, int]:
        """Ask for scores. As in kube-scheduler, several scores of one node are added, and scores of nodes not asked about are dropped.

        Returns:
            Scores as answered, by node, without the extender's weight.

        Raises:
            ExtenderError: the call failed, or a score is too large.
        """
        answer = await self._call(self.settings.prioritize_verb, lambda: self._about_nodes(pod, nodes), read_scores)
        scores: dict[NodeName, int] = {}
        asked: set[str] = set(nodes)
        for host, score in answer:
            if host in asked:
                node = NodeName(host)
                scores[node] = scores.get(node, 0) + score
        for node, score in scores.items():
            if abs(score) > _LARGEST_SCORE:
                raise self._complaint(f"score of node {_quoted(node)}: found {score}; allowed 0 to {MAX_EXTENDER_SCORE}")
        return scores

    async def preempt(
        self, pod: PodInfo, victims: Mapping[NodeName, NodeVictims], pods_on: PodsOn | None = None
    ) -> dict[NodeName, NodeVictims]:
        """Ask which candidates for preemption it agrees to, perhaps with other victims; see the port.

        Args:
            pod: the preemptor.
            victims: candidates, by node.
            pods_on: the pods on a node, from which it may choose other victims; None: only from `victims`.

        Raises:
            ExtenderError: the call failed, or the answer names an unknown node or a pod that is not on its node.
        """
        answer = await self._call(self.settings.preempt_verb, lambda: self._about_victims(pod, victims), read_victims)
        agreed: dict[NodeName, NodeVictims] = {}
        for name, meta in answer.items():
            node = NodeName(name)
            found = self._victims_on(node, meta, victims, pods_on)
            # A node that was sent without victims may stay so, for the next extender.
            if found.pods or (node in victims and not victims[node].pods):
                agreed[node] = found
            elif not self.settings.ignorable:
                raise ExtenderError(f"expected at least one victim pod on node {_quoted(node)}")
        return agreed

    async def bind(self, pod: PodInfo, node: NodeName) -> None:
        """Have the extender bind the pod. When this returns, the pod is bound.

        Raises:
            ExtenderError: the call failed. The pod may be bound all the same; the question is not asked twice.
        """

        async def question() -> bytes:
            return bind_request(pod.name, pod.namespace, pod.uid, node)

        # Not asked again after a broken connection: the extender may have bound the pod, and the binder reads it.
        error = await self._call(self.settings.bind_verb, question, read_error, again=False)
        if error:
            raise ExtenderError(error)

    # --- one call ------------------------------------------------------------------------------------------------------------

    async def _call(
        self, verb: str, question: Callable[[], Awaitable[bytes]], read: Callable[[bytes, AnswerRoom], T], *, again: bool = True
    ) -> T:
        connection, limit, sent = self._connection, self.settings.http_timeout, False
        if connection is None:
            raise self._complaint("not called: its profile is not in effect any more")
        try:
            async with asyncio.timeout(limit):
                body = await question()
                sent = True
                answer = await connection.post(verb, body, again=again)
        except TimeoutError:
            missing = "no answer" if sent else "the objects to send could not be read"
            raise ExtenderError(f'Post "{connection.url(verb)}": {missing} within {limit:g}s') from None
        try:
            return await self._understood(read, answer, AnswerRoom.beside(body, self.nodes()))
        except BadAnswer as problem:
            raise ExtenderError(f"failed {verb} with extender at URL {connection.url(verb)}: {problem}") from None

    async def _understood(self, read: Callable[[bytes, AnswerRoom], T], answer: bytes, room: AnswerRoom) -> T:
        """Read an answer. A large one is read in a thread, one of this extender's at a time."""
        if len(answer) <= _READ_AT_ONCE:
            return read(answer, room)
        room.check(answer)
        if self._connection is None:
            raise self._complaint("not called: its profile is not in effect any more")
        if self._reader is None:
            self._reader = ThreadPoolExecutor(1, "extender answers")
        return await asyncio.get_running_loop().run_in_executor(self._reader, read, answer, room)

    async def _about_nodes(self, pod: PodInfo, nodes: Sequence[NodeName]) -> bytes:
        whole = await self.objects.pod(pod, self._readers)
        if self.settings.node_cache_capable:
            return node_request(whole, None, nodes)
        return node_request(whole, await self.objects.nodes(nodes), None)

    async def _about_victims(self, pod: PodInfo, victims: Mapping[NodeName, NodeVictims]) -> bytes:
        whole = await self.objects.pod(pod, self._readers)
        if self.settings.node_cache_capable:
            return preempt_request(whole, victims, None)
        return preempt_request(whole, victims, await self.objects.pods((one for on in victims.values() for one in on.pods), self._readers))

    # --- meaning of an answer ------------------------------------------------------------------------------------------------

    def _kept(self, answer: FilterAnswer, asked: set[NodeName]) -> tuple[NodeName, ...]:
        """Return the nodes that the extender kept.

        Only an extender that was sent names may answer with names. An answer without nodes keeps none.
        """
        by_name = answer.node_names if self.settings.node_cache_capable else None
        names = by_name if by_name is not None else answer.nodes or ()
        kept = tuple(dict.fromkeys(NodeName(name) for name in names))
        for node in kept:
            if node not in asked:
                who = _quoted(self.settings.name)
                raise ExtenderError(f"extender {who} claims a filtered node {_quoted(node)} which is not found in the input node list")
        return kept

    def _victims_on(self, node: NodeName, meta: MetaVictims, asked: Mapping[NodeName, NodeVictims], pods_on: PodsOn | None) -> NodeVictims:
        try:
            there = pods_on(node) if pods_on is not None else asked[node].pods
        except KeyError:
            raise ExtenderError(f"nodeinfo not found for node name {_quoted(node)}") from None
        by_uid = {pod.uid: pod for pod in there} if meta.uids else {}
        for uid in meta.uids:
            if uid not in by_uid:
                raise ExtenderError(
                    f"extender: {self.settings.name} claims to preempt pod (UID: {uid}) on node: {node}, "
                    "but the pod is not found on that node"
                )
        return NodeVictims(tuple(by_uid[uid] for uid in dict.fromkeys(meta.uids)), meta.violations)

    def _complaint(self, what: str) -> ExtenderError:
        return ExtenderError(f"extender {_quoted(self.settings.name)}: {what}")


def _quoted(text: str) -> str:
    """Quote a name as Go's %q does."""
    return json.dumps(text, ensure_ascii=False)
