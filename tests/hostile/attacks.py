"""The attacks: each is one line of `ATTACKS`, and a function that begins it and goes on with it for as long as its context is open.

Sizes, mixtures and order come from a seeded generator, so that a bound which holds for one size alone is found out.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from random import Random
from typing import Any, Final, TypeVar

from intruders import HABITS, intruders
from manifest import Object, manifest
from placewright_lab.demo.feed import background
from serving.desk import LOOPBACK, get, said, trusting

from .siege import HOSTILE, NAMESPACES, PODS, PROFILES, Siege, a_profile

GROUPS: Final = f"/apis/scheduling.x-k8s.io/v1alpha1/namespaces/{HOSTILE}/podgroups"
CLAIMS: Final = f"/apis/resource.k8s.io/v1/namespaces/{HOSTILE}/resourceclaims"
DRIVER: Final = "gpu.sandbox.placewright.dev"
HOST: Final = "kubernetes.io/hostname"
#: In each answer of /metrics.
_PENDING: Final = "scheduler_pending_pods"
T = TypeVar("T")
#: Of a readiness probe that states none.
_FAILURE_THRESHOLD: Final = 3
#: What a node says of itself, each a storm of its own.
_ROOM: Final = ("3", "4", "8", "16")


class Dice(Random):
    """Where an attack has sizes to choose from, the first variant takes what did most harm before there was a bound, the others any."""

    def __init__(self, name: str, variant: int) -> None:
        super().__init__(f"{name} {variant}")
        self._variant = variant

    def worst_first(self, sizes: Sequence[T]) -> T:
        """One of the sizes, of which the first is the worst."""
        return sizes[0] if self._variant == 1 else self.choice(sizes)


Begin = Callable[[Siege, Dice], AbstractAsyncContextManager[None]]


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack.

    Attributes:
        begin: context that is entered after everything is in the API server.
        most: MiB of the operator's resident memory at the end, at most.
        devices: number of devices of each node.
        nodes: least number of nodes, if the harm grows with them.
        promised: seconds of the operator's processor time within which each healthy pod is placed. The clock shows more seconds on a
            machine
            with other work. An attack lasts until all are placed, so the test also fails for pods that only wait.
    """

    begin: Begin
    most: int = 400
    devices: int = 0
    nodes: int = 0
    promised: float = 2.0


def terms(count: int, rng: Dice) -> list[Object]:
    """Required node affinity that all nodes meet, as long as wanted."""
    operator = rng.choice(("DoesNotExist", "NotIn"))
    values = {} if operator == "DoesNotExist" else {"values": ["x"]}
    return [{"matchExpressions": [{"key": f"l{number}", "operator": operator, **values}]} for number in range(count)]


def node_affinity(wanted: list[Object]) -> Object:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": wanted}}}


def spread(count: int, rng: Dice) -> list[Object]:
    """Constraints of different topologies; some of them required."""
    when = rng.choice(("ScheduleAnyway", "DoNotSchedule"))
    return [
        {"maxSkew": 1, "topologyKey": f"k{number}", "whenUnsatisfiable": when, "labelSelector": {"matchLabels": {"a": "b"}}}
        for number in range(count)
    ]


@asynccontextmanager
async def churned(siege: Siege, rng: Dice, names: list[str], body: Callable[[], Object]) -> AsyncIterator[None]:
    """Sometimes: pods are deleted, and others like them created, all the while."""
    if rng.random() < 0.5:
        yield
        return

    async def replace(_number: int) -> None:
        await siege.delete_pod(names.pop(rng.randrange(len(names))))
        names.extend(await siege.pods([body()]))

    async with siege.storm(2.0, replace):
        yield


# --- pods that are much work to decide --------------------------------------------------------------------------------------------


@asynccontextmanager
async def giant_spread(siege: Siege, rng: Dice) -> AsyncIterator[None]:
    """Spread constraints times node affinity terms."""
    pods, constraints, wanted = rng.worst_first(((1, 1000, 1000), (3, 400, 800), (4, 64, 2000), (60, 60, 60), (400, 16, 16)))

    def body() -> Object:
        return siege.pod("spread", topologySpreadConstraints=spread(constraints, rng), affinity=node_affinity(terms(wanted, rng)))

    names = await siege.pods(body() for _ in range(pods))
    async with churned(siege, rng, names, body):
        yield


@asynccontextmanager
async def giant_affinity(siege: Siege, rng: Dice) -> AsyncIterator[None]:
    """Terms of affinity to pods, times kinds of pods that run."""
    kinds, pods, wanted = rng.worst_first(((600, 1, 2000), (300, 4, 700), (600, 8, 64), (300, 100, 30)))
    nodes = await siege.node_names()
    await siege.pods(
        siege.pod("kind", meta={"labels": {"kind": f"k{number}"}}, nodeName=nodes[number % len(nodes)]) for number in range(kinds)
    )
    of = rng.choice(("podAffinity", "podAntiAffinity"))

    def term(number: int) -> Object:
        others = [{"key": "kind", "operator": "NotIn", "values": [f"v{number}"]}]
        return {"labelSelector": {"matchExpressions": others}, "topologyKey": HOST}

    def body() -> Object:
        listed = [term(number) for number in range(wanted)]
        if rng.random() < 0.5:
            return siege.pod("affine", affinity={of: {"requiredDuringSchedulingIgnoredDuringExecution": listed}})
        weighed = [{"weight": 1, "podAffinityTerm": each} for each in listed]
        return siege.pod("affine", affinity={of: {"preferredDuringSchedulingIgnoredDuringExecution": weighed}})

    names = await siege.pods(body() for _ in range(pods))
    async with churned(siege, rng, names, body):
        yield


@asynccontextmanager
async def selector_flood(siege: Siege, rng: Dice) -> AsyncIterator[None]:
    """Terms with selectors of namespaces, times namespaces, whose labels change all the while."""
    spaces, pods, wanted = rng.worst_first(((200, 1, 800), (300, 20, 64), (100, 200, 8)))
    names = [siege.name("space") for _ in range(spaces)]
    await siege.create(NAMESPACES, (manifest("v1", "Namespace", name) for name in names))

    def term(number: int) -> Object:
        return {
            "namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": [f"t{number}"]}]},
            "labelSelector": {"matchLabels": {"app": f"a{number}"}}, "topologyKey": HOST,
        }  # fmt: skip

    def body() -> Object:
        listed = {"requiredDuringSchedulingIgnoredDuringExecution": [term(number) for number in range(wanted)]}
        return siege.pod("select", affinity={"podAntiAffinity": listed})

    await siege.pods(body() for _ in range(pods))

    async def relabel(number: int) -> None:
        await siege.api.patch(f"{NAMESPACES}/{rng.choice(names)}", {"metadata": {"labels": {"team": f"t{number % wanted}"}}})

    async with siege.storm(rng.choice((10.0, 50.0)), relabel):
        yield


# --- pods that are much to keep ---------------------------------------------------------------------------------------------------


@asynccontextmanager
async def resource_names(siege: Siege, rng: Dice) -> AsyncIterator[None]:
    """Names of resources that no node offers, asked for by pods that their author put on nodes, or by pods that wait."""
    pods, named = rng.worst_first(((1, 15_000), (6, 3000), (40, 250), (300, 60)))
    assigned = rng.worst_first((True, True, False))
    nodes = await siege.node_names()

    def body() -> Object:
        asked = {f"{siege.name('r')}.example.test/x": "1" for _ in range(named)}
        made = siege.pod("names", **({"nodeName": rng.choice(nodes)} if assigned else {}))
        made["spec"]["containers"][0]["resources"] = {"requests": asked, "limits": asked}
        return made

    names = await siege.pods(body() for _ in range(pods))
    async with churned(siege, rng, names, body):
        yield


@asynccontextmanager
async def signature_flood(siege: Siege, rng: Dice) -> AsyncIterator[None]:
    """Pods of which no two are alike, one after the other, never many at once: a quota on pods is no help."""
    size, at_once = rng.worst_first(((6000, 1), (2000, 4), (20, 40)))

    def body() -> Object:
        values = [f"{siege.name('none')}-{'x' * 40}" for _ in range(size)]
        return siege.pod("alone", affinity=node_affinity([{"matchExpressions": [{"key": HOST, "operator": "NotIn", "values": values}]}]))

    names = await siege.pods(body() for _ in range(at_once))

    async def next_one(_number: int) -> None:
        names.extend(await siege.pods([body()]))
        await siege.delete_pod(names.pop(0))

    for number in range(20):
        await next_one(number)
    async with siege.storm(10.0, next_one):
        yield


@asynccontextmanager
async def large_pods_come_and_go(siege: Siege, rng: Dice) -> AsyncIterator[None]:
    """Pods of hundreds of KB, all different, one after the other: none of them is there when the next one comes."""
    count, size = rng.worst_first(((200, 16_000), (200, 6000), (400, 1000)))
    for _ in range(count):
        values = [f"{siege.name('none')}-{'x' * 40}" for _ in range(size)]
        terms = [{"matchExpressions": [{"key": HOST, "operator": "NotIn", "values": values}]}]
        for name in await siege.pods([siege.pod("large", affinity=node_affinity(terms))]):
            await siege.delete_pod(name)
    yield


@asynccontextmanager
async def huge_annotations(siege: Siege, rng: Dice) -> AsyncIterator[None]:
    """Pods with all the annotations that they may have, which change all the while; on nodes or waiting."""
    pods, size = rng.worst_first(((60, 240_000), (200, 40_000)))
    nodes = await siege.node_names()
    text = "".join(rng.choices("abcdefgh", k=size))

    def body() -> Object:
        place = rng.choice(({"nodeName": rng.choice(nodes)}, {"schedulerName": "nobody"}, {"nodeSelector": {"no": "node"}}, {}))
        return siege.pod("huge", meta={"annotations": {"example.test/huge": text}}, **place)

    names = await siege.pods(body() for _ in range(pods))

    async def change(number: int) -> None:
        await siege.api.patch(f"{PODS.format(HOSTILE)}/{rng.choice(names)}", {"metadata": {"annotations": {"example.test/n": str(number)}}})

    async with siege.storm(20.0, change):
        yield


# --- groups, devices, extenders -----------------------------------------------------------------------------------------------------


def member(siege: Siege, group: str, cpu: str, **spec: Any) -> Object:
    """A pod of a group of scheduler-plugins."""
    made = siege.pod(f"{group}-m", meta={"labels": {"scheduling.x-k8s.io/pod-group": group}}, **spec)
    made["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    return made


async def pod_groups(siege: Siege, of: str, count: int, least: int, **annotations: str) -> list[str]:
    """Groups that need so many members; their names."""
    version, spec = "scheduling.x-k8s.io/v1alpha1", {"minMember": least}
    meta = {"annotations": {f"placewright.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}}
    names = [siege.name(of) for _ in range(count)]
    await siege.create(GROUPS, (manifest(version, "PodGroup", name, meta, spec=spec) for name in names))
    return names


@asynccontextmanager
async def group_flood(siege: Siege, rng: Dice) -> AsyncIterator[None]:
    """Groups that never have all their members, and one that never fits."""
    groups, members = rng.worst_first(((150, 2), (20, 20), (1, 400)))
    names = await pod_groups(siege, "group", groups, members + rng.choice((0, 0, 5)))

    def one(name: str) -> Object:
        return member(siege, name, rng.choice(("1m", "30")))

    made = await siege.pods(one(name) for name in names for _ in range(members))
    async with churned(siege, rng, made, lambda: one(rng.choice(names))):
        yield


@asynccontextmanager
async def groups_of_many_domains(siege: Siege, rng: Dice) -> AsyncIterator[None]:
    """Groups with a domain a node, of which a last member fits nowhere, or on one node only, which the others' label keeps from it."""
    groups, members = rng.worst_first(((8, 100), (1, 300), (60, 12)))
    keys = rng.worst_first((({"no": "such"},), ({HOST: "node-0000"}, {"no": "such"})))
    names = await pod_groups(siege, "domains", groups, members, topology_key=HOST)

    def one(name: str, number: int) -> Object:
        if number < members - 2:
            return member(siege, name, "1m")
        on_one = number == members - 2 and len(keys) > 1
        return member(siege, name, "1m", nodeSelector={HOST: "node-0001"} if on_one else rng.choice(keys))

    made = await siege.pods(one(name, number) for name in names for number in range(members))
    async with churned(siege, rng, made, lambda: one(rng.choice(names), 0)):
        yield


@asynccontextmanager
async def groups_of_all_nodes(siege: Siege, rng: Dice) -> AsyncIterator[None]:
    """Groups that need a whole node for each member, and more nodes than are whole; thousands of groups of one member that fits nowhere."""
    groups, members = rng.worst_first(((10, 101), (1, 400), (1500, 1)))
    cpu = "15" if members > 1 else "400"
    names = await pod_groups(siege, "whole", groups, members)
    made = await siege.pods(member(siege, name, cpu) for name in names for _ in range(members))
    async with churned(siege, rng, made, lambda: member(siege, rng.choice(names), cpu)):
        yield


@asynccontextmanager
async def groups_that_nodes_are_kept_for(siege: Siege, rng: Dice) -> AsyncIterator[None]:
    """With reservations on: groups whose members need whole nodes, beside a pod on each node, of a service or of a Job."""
    args = {"reservations": 1000, "reservationAfterSeconds": 0}
    await siege.api.patch(f"{PROFILES}/default", {"spec": {"pluginConfig": [{"name": "GangScheduling", "args": args}]}})
    nodes = await siege.node_names()
    ends = rng.worst_first((("Never",), ("Always",), ("Always", "OnFailure")))
    await siege.pods(siege.pod("small", nodeName=node, restartPolicy=rng.choice(ends)) for node in nodes)
    groups, members = rng.worst_first(((100, 1), (1, len(nodes)), (20, 5)))
    names = [*await pod_groups(siege, "kept", groups, members), *await pod_groups(siege, "all", 1, len(nodes))]
    made = await siege.pods(member(siege, name, "16") for name in names for _ in range(len(nodes) if name == names[-1] else members))
    async with churned(siege, rng, made, lambda: member(siege, rng.choice(names), "16")):
        yield


@asynccontextmanager
async def device_selectors(siege: Siege, rng: Dice) -> AsyncIterator[None]:
    """Claims whose selectors are long to read and to ask, in many alternatives."""
    text = rng.choice(("1", "9")) * rng.choice((500, 3000, 8000))
    expression = rng.choice((
        f'isQuantity("{text}!")', f'quantity("1").isLessThan(quantity("{text[:200]}"))', f'"{text}".matches("(1*)*!")',
        " && ".join(f'isQuantity("{text[:300]}{number}!")' for number in range(20)), "false",
    ))  # fmt: skip
    requests, alternatives, claims = rng.worst_first(((16, 8, 2), (1, 1, 60), (8, 4, 10)))

    def request(number: int) -> Object:
        wish = {"deviceClassName": DRIVER, "allocationMode": "ExactCount", "count": 1, "selectors": [{"cel": {"expression": expression}}]}
        if alternatives == 1:
            return {"name": f"r{number}", "exactly": wish}
        return {"name": f"r{number}", "firstAvailable": [{"name": f"s{each}", **wish} for each in range(alternatives)]}

    names = [siege.name("claim") for _ in range(claims)]
    spec = {"devices": {"requests": [request(number) for number in range(requests)]}}
    meta = {"namespace": HOSTILE}
    made = await siege.create(CLAIMS, (manifest("resource.k8s.io/v1", "ResourceClaim", name, meta, spec=spec) for name in names))
    if made:  # what the API server refuses is no attack
        await siege.pods(siege.pod("claiming", resourceClaims=[{"name": "c", "resourceClaimName": name}]) for name in made)
    yield


@asynccontextmanager
async def hung_extender(siege: Siege, rng: Dice) -> AsyncIterator[None]:
    """An extender of another profile that takes what it is asked, and never answers."""

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.read()
        finally:
            writer.close()

    server = await asyncio.start_server(hang, LOOPBACK, 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        verbs = rng.worst_first(({"bindVerb": "bind"}, {"filterVerb": "filter"}, {"prioritizeVerb": "score", "weight": 1}))
        extender = {"urlPrefix": f"http://{LOOPBACK}:{port}", "httpTimeout": "300s", **verbs}
        await siege.create(PROFILES, [a_profile("slow", schedulerName="slow", extenders=[extender])])
        await siege.pods(siege.pod("slow", scheduler="slow") for _ in range(rng.choice((600, 700))))
        yield


# --- the network, the nodes ---------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def silent_connections(siege: Siege, rng: Dice) -> AsyncIterator[None]:
    """More connections than the port has places for, of all habits; `/livez` is asked beside them, from their address."""
    client = trusting()
    port = siege.secure_port
    kinds = rng.worst_first((["silent within TLS"], list(HABITS), [rng.choice(list(HABITS))]))
    # Open pages alone are asked for: a tenant has no token.
    crowd = intruders(port, rng.choices(kinds, k=rng.choice((300, 500))), client)
    async with crowd, background(_probes(port, client), "probes") as probes:
        yield
        assert not probes.done(), probes


async def _probes(port: int, client: Any) -> None:
    """As the kubelet probes, and more often: so many failures in a row, and a pod is not ready any more."""
    failed: list[object] = []
    while len(failed) < _FAILURE_THRESHOLD:
        try:
            async with asyncio.timeout(15.0):
                answer = await said(port, get("/livez"), tls=client)
            failed = [] if answer.startswith(b"HTTP/1.1 200 OK") else [*failed, answer]
        except OSError as lost:  # a probe at the crowd's own address may be taken for one of the crowd; TimeoutError is one, too
            failed.append(lost)
        await asyncio.sleep(0.5)
    raise AssertionError(failed)


@asynccontextmanager
async def made_up_tokens(siege: Siege, rng: Dice) -> AsyncIterator[None]:
    """Clients that ask for pages with made-up tokens; a scrape with a good token is answered beside them, from their address."""
    client, port = trusting(), siege.secure_port
    kinds = rng.worst_first((["a made-up token"], ["a made-up token and away"], ["a made-up token", "a made-up token and away"]))
    assert _PENDING in await siege.scraped(), "the token is known as good from now on"
    async with intruders(port, rng.choices(kinds, k=rng.choice((200, 300))), client):
        yield
        for _ in range(3):
            assert _PENDING in await siege.scraped()


@asynccontextmanager
async def node_storm(siege: Siege, rng: Dice) -> AsyncIterator[None]:
    """Nodes that say something else of themselves all the time, beside pods that wait for something of a node."""
    nodes = await siege.node_names()
    await siege.pods(siege.pod("waits", affinity=node_affinity(terms_that_none_meets(rng))) for _ in range(rng.choice((20, 300))))

    async def change(number: int) -> None:
        room = {"cpu": rng.choice(_ROOM), "memory": "16Gi", "pods": "110"}
        kind = rng.randrange(3)
        path = f"/api/v1/nodes/{rng.choice(nodes)}"
        if kind == 0:
            await siege.api.patch(f"{path}/status", {"status": {"allocatable": room, "capacity": room}})
        elif kind == 1:
            await siege.api.patch(path, {"metadata": {"labels": {f"l{number % 50}": str(number)}}})
        else:
            await siege.api.patch(path, {"metadata": {"annotations": {"example.test/beat": str(number)}}})

    async with siege.storm(rng.choice((50.0, 200.0)), change):
        yield


def terms_that_none_meets(rng: Dice) -> list[Object]:
    count = rng.choice((10, 300))
    return [{"matchExpressions": [{"key": f"l{number}", "operator": "In", "values": ["never"]}]} for number in range(count)]


@asynccontextmanager
async def mixture(siege: Siege, rng: Dice) -> AsyncIterator[None]:
    """Three of the others at once."""
    alone = [each.begin for each in ATTACKS.values() if each.begin is not mixture and not each.devices]
    async with AsyncExitStack() as stack:
        for begin in rng.sample(alone, 3):
            await stack.enter_async_context(begin(siege, Dice(str(rng.random()), 2)))
        yield


#: By name.
ATTACKS: Final[dict[str, Attack]] = {
    "spread constraints times affinity terms": Attack(giant_spread),
    "affinity terms times kinds of pods": Attack(giant_affinity),
    "namespace selectors times namespaces": Attack(selector_flood),
    "resource names that no node has": Attack(resource_names, nodes=2000),
    "pods of which no two are alike": Attack(signature_flood),
    "large pods that come and go": Attack(large_pods_come_and_go, most=220),
    "huge annotations": Attack(huge_annotations),
    "groups that never fit": Attack(group_flood, promised=1.0),
    "groups with a domain a node": Attack(groups_of_many_domains, promised=1.0),
    "groups that want all nodes": Attack(groups_of_all_nodes, promised=1.0),
    "groups that nodes are kept for": Attack(groups_that_nodes_are_kept_for, promised=1.0),
    "device selectors": Attack(device_selectors, devices=8),
    "a hung extender in another profile": Attack(hung_extender),
    "silent connections": Attack(silent_connections),
    "made-up tokens": Attack(made_up_tokens),
    "nodes that change all the time": Attack(node_storm),
    "three at once": Attack(mixture),
}
