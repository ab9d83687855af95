"""Several replicas of the operator, as a Deployment has them: one ServiceAccount, and each with a token that is bound to its own pod.

The API server writes that pod into the audit log beside each request. The pods are objects only: the processes are ours.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from faults.audit import Findings
from faults.proxy import Proxy
from faults.replica import Replica, operator
from handlers.placement_checker import amount, requests
from kubesandbox.auth.credentials import make_credentials, write_private
from lab.controlplane.onceaudit import exactly_once
from news import News
from pacing import paced
from placewright.kube.errors import RetryBackoff, until_answered
from placewright_lab.controlplane.audit import Record
from placewright_lab.demo.feed import background

from . import judging
from .ending import overfull, world_of
from .installation import NAMESPACE
from .makers import restricted_container
from .stage import Stage
from .views import DEADLINE

#: How long a replica that vanished keeps its lead here, seconds.
LIFETIME: Final = 5
_PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
_TOKENS: Final = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/placewright/token"
_LAST_LINES: Final = 5


class Member(Replica):
    """One of them. Its proxy stands in its way only where a test is to cut it off."""

    def last_words(self) -> str:
        """The end of its log, in one line."""
        return " | ".join(self.log.read_text(errors="replace").splitlines()[-_LAST_LINES:]) or "it said nothing"


class Replicas:
    """What a test may do with them."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.members: list[Member] = []
        self._proxies: list[Proxy] = []
        self._log = judging.LogReader(stage.control_plane.audit_log)

    # --- starting ---

    async def at_work(self, count: int, *, can_be_cut: bool = False) -> tuple[Member, list[Member]]:
        """So many, ready; the one that leads, and the others."""
        leader = await self.start(can_be_cut=can_be_cut)
        await self.until_ready(leader)  # the older outranks the younger, from the beginning
        others = [await self.start(can_be_cut=can_be_cut) for _ in range(count - 1)]
        await self.stage.until_placed(await self.stage.pods(1, cpu="1m"))
        await self.until_ready(*others)
        assert {each.replica for each in self.bindings()} == {leader.name}
        return leader, others

    async def start(self, *, can_be_cut: bool = False) -> Member:
        """One more."""
        name = f"{self.stage.namespace}-replica-{len(self.members)}"
        folder = self.stage.installation.folder
        direct = self.stage.control_plane.kubeconfig_of(await self._token(name), folder / f"{name}.kubeconfig")
        proxy = Proxy(name, direct, seed=0)
        if can_be_cut:
            write_private(direct, await proxy.start(make_credentials()))
            self._proxies.append(proxy)
        made = Member(name, proxy, operator(direct, LIFETIME), folder)
        self.members.append(made)
        self.stage.operators.append(made)
        await made.start()
        return made

    async def _token(self, name: str) -> str:
        spec = {"schedulerName": "nobody", "serviceAccountName": "placewright", "containers": [restricted_container("scheduler")]}
        pod = await self._post(_PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
        bound = {"kind": "Pod", "apiVersion": "v1", "name": name, "uid": pod["metadata"]["uid"]}
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
        answer = await self._post(_TOKENS, {**request, "spec": {"expirationSeconds": 3600, "boundObjectRef": bound}})
        return str(answer["status"]["token"])

    async def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return dict(json.loads(await until_answered(lambda: self.stage.client.post(path, body), RetryBackoff(maximum=1.0))))

    async def until_ready(self, *members: Member) -> None:
        """Until each of them has filled its caches."""
        await self._until(lambda: all("synced: " in each.log.read_text() for each in members), "replicas are ready")

    # --- load ---

    @asynccontextmanager
    async def burst(self, count: int, begun: int) -> AsyncIterator[asyncio.Task[list[str]]]:
        """Pods are being created; open when so many are placed, and left when all run."""
        async with background(self.stage.pods(count), "burst") as creating:
            await self.stage.until_some_placed(begun)
            yield creating
            await self.stage.until_running(await creating)

    @asynccontextmanager
    async def steadily(self, a_second: float, **wanted: Any) -> AsyncIterator[list[str]]:
        """A pod is created every so often while this is open; when it is left all run."""
        keys: list[str] = []

        async def create() -> None:
            async for _ in paced(a_second):
                keys.extend(await self.stage.pods(1, **wanted))

        async with background(create(), "steady stream of pods") as creating:
            yield keys
            assert not creating.done(), creating
        await self.stage.until_running(keys)

    # --- waiting for what the log says ---

    def records(self) -> list[Record]:
        """All that anybody asked for."""
        return self._log.records()

    def bindings(self) -> list[judging.Binding]:
        """All Bindings that anybody sent."""
        return judging.bindings(self.records())

    async def until_bound(self, after: float, by: Member | None = None) -> judging.Binding:
        """Until a Binding that came after that moment (by this replica) was granted: that one."""
        name = by.name if by is not None else ""
        await self._until(lambda: judging.first_binding(self.bindings(), after, name), f"a Binding by {name or 'a replica'}")
        found = judging.first_binding(self.bindings(), after, name)
        assert found is not None
        return found

    async def until_back(self, down: float) -> float:
        """Until Bindings are granted again after the server was down then; seconds from the first write that it granted anybody."""
        first = await self.until_bound(down)
        return first.answered - judging.first_write(self.records(), down)

    async def until_asks(self, member: Member, after: float) -> None:
        """Until the API server has heard of it again."""

        def heard() -> bool:
            own = (each for each in self.records() if each.pod == member.name)
            return any(judging.seconds(each.request_received_timestamp) > after for each in own)

        await self._until(heard, f"{member.name} asks for something")

    async def until_lifetime_is_over(self, since: float) -> None:
        """Until nobody need believe any more in a replica that was last heard of then."""
        await self._until(lambda: time.time() > since + LIFETIME, "its lifetime is over")

    async def _until(self, condition: Callable[[], Any], what: str) -> None:
        await News().until(condition, lambda: f"{what}; {self.stage.words()}", DEADLINE, look=0.1)

    # --- the end ---

    async def end(self) -> list[int]:
        """All that live end in order; their exit codes."""
        return [await each.end() for each in self.members if each.alive]

    def leaders(self) -> list[str]:
        """Who held the Lease, one after the other."""
        return judging.reigns(judging.lease_writes(self.records()))

    async def judged(self) -> Findings:
        """End all replicas that live, and judge all that the audit log has since the stage was set; no events and conditions."""
        codes = await self.end()
        assert not any(codes), codes
        sent, placements, world = self.bindings(), self.stage.views.placements, world_of(self.stage)
        asks = {pod["metadata"]["uid"]: requests(pod)["cpu"] for pod in world.pods}
        room = {name: amount(node["status"]["allocatable"]["cpu"]) for name, node in world.nodes.items()}
        known = {"", *(each.name for each in self.members)}
        strangers = [f"{each}: a stranger" for each in sent if each.replica not in known]
        return Findings(
            pods=len(placements),
            bound=sum(map(bool, placements.values())),
            terms=len(self.leaders()),
            doubly_bound=list(exactly_once([each.asked for each in sent], placements).faults),
            lost=[f"{uid} has no node" for uid, node in placements.items() if not node],
            overcommitted=[*judging.overcommitted(sent, asks, room), *overfull(world)],
            unled=[*judging.without_the_lead(judging.lease_writes(self.records()), sent), *strangers],
        )

    async def close(self) -> None:
        """Whatever happened, nothing is left running."""
        await asyncio.gather(*(each.kill() for each in self.members), return_exceptions=True)
        await asyncio.gather(*(each.close() for each in self._proxies), return_exceptions=True)
        for each in self.members:
            await self.stage.delete(f"{_PODS}/{each.name}")
