"""Constraints that contradict themselves, or that nobody can read: the pod waits and says why, and nothing else notices.

API servers refuse most of these; old ones, other versions and whoever writes to etcd do not. The sandbox takes them all.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from .stage import Stage, new_stage, operator

Object = dict[str, Any]
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
FIRST_TERM = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0]"
EXPRESSION, FIELD = f"{FIRST_TERM}.matchExpressions[0]", f"{FIRST_TERM}.matchFields[0]"
NO_NODE_FITS = "3 node(s) didn't match Pod's node affinity/selector"


def needs(key: str, operator: str, *values: str) -> Object:
    return {"key": key, "operator": operator, "values": list(values)}


def on_nodes(*expressions: Object, fields: tuple[Object, ...] = ()) -> Object:
    """Required node affinity of one term."""
    term = {"matchExpressions": list(expressions), "matchFields": list(fields)}
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}}


def near(selector: Object, key: str = HOST, **fields: Any) -> Object:
    return {"podAffinity": {REQUIRED: [{"labelSelector": selector, "topologyKey": key, **fields}]}}


def away(selector: Object, key: str = HOST) -> Object:
    return {"podAntiAffinity": {REQUIRED: [{"labelSelector": selector, "topologyKey": key}]}}


def spread(selector: Object, **fields: Any) -> Object:
    constraint = {"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector, **fields}
    return {"topologySpreadConstraints": [constraint]}


def labels(**pairs: str) -> Object:
    return {"matchLabels": pairs}


def says(*expressions: Object) -> Object:
    return {"matchExpressions": list(expressions)}


UNREADABLE = says(needs("app", "Near", "web"))


@dataclass(frozen=True, eq=False)
class Waits:
    """A pod that no node can take.

    Attributes:
        said: parts of its condition's message.
    """

    title: str
    spec: Object
    said: tuple[str, ...]
    labels: dict[str, str] = field(default_factory=dict)


EMPTY_SET = "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
NO_OPERATOR = '"Near" is not a valid label selector operator'
PARSING = "parsing pod: "
HARD = "get constraints from pod: obtaining pod's hard topology spread constraints: "
SOFT = "calculating preScoreState: obtaining pod's soft topology spread constraints: "

WAITING = (
    # --- what contradicts itself ---
    Waits(
        "near and away from the same pods",
        {"affinity": {**near(labels(app="web")), **away(labels(app="web"))}},
        ("1 node(s) didn't match pod anti-affinity rules", "2 node(s) didn't match pod affinity rules"),
    ),
    Waits(
        "a node selector against the node affinity",
        {"nodeSelector": {ZONE: "a"}, **on_nodes(needs(ZONE, "NotIn", "a"))},
        (NO_NODE_FITS,),
    ),
    Waits("an expression against another", on_nodes(needs(ZONE, "Exists"), needs(ZONE, "DoesNotExist")), (NO_NODE_FITS,)),
    Waits("an empty interval", on_nodes(needs("generation", "Gt", "5"), needs("generation", "Lt", "4")), (NO_NODE_FITS,)),
    Waits(
        "two names at once",
        on_nodes(fields=(needs("metadata.name", "In", "node-0"), needs("metadata.name", "In", "node-1"))),
        ("pod affinity terms conflict",),
    ),
    Waits(
        "a skew of nothing",
        spread(labels(app="odd"), maxSkew=0),
        ("node(s) didn't match pod topology spread constraints",),
        {"app": "odd"},
    ),
    Waits("a skew below nothing", spread(labels(app="odd"), maxSkew=-3), ("didn't match pod topology spread constraints",), {"app": "odd"}),
    Waits("a domain without a name", spread(labels(app="odd"), topologyKey=""), ("spread constraints (missing required label)",)),
    Waits("affinity to a domain without a name", {"affinity": near(labels(app="web"), "")}, ("3 node(s) didn't match pod affinity rules",)),
    # --- node affinity that nobody can read ---
    Waits(
        "an unknown operator for nodes",
        on_nodes(needs(ZONE, "Near", "a")),
        (NO_NODE_FITS, f'{EXPRESSION}.operator: Unsupported value: "Near"'),
    ),
    Waits("in no values, for nodes", on_nodes(needs(ZONE, "In")), (NO_NODE_FITS, f"{EXPRESSION}.{EMPTY_SET}")),
    Waits("a word for a number", on_nodes(needs("generation", "Gt", "many")), (f'{EXPRESSION}.values[0]: Invalid value: "many"',)),
    Waits("two numbers for one", on_nodes(needs("generation", "Lt", "1", "2")), (f'{EXPRESSION}.values: Invalid value: ["1", "2"]',)),
    Waits("values for a mere existence", on_nodes(needs(ZONE, "Exists", "a")), (f'{EXPRESSION}.values: Invalid value: ["a"]',)),
    Waits(
        "a key that is none, for nodes",
        on_nodes(needs("not a key", "DoesNotExist")),
        (f'{EXPRESSION}.key: Invalid value: "not a key"',),
    ),
    Waits("an unknown field", on_nodes(fields=(needs("spec.x", "In", "x"),)), (f'{FIELD}.key: Unsupported value: "spec.x"',)),
    Waits(
        "an unknown operator in a preference",
        {"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 1, "preference": says(needs(ZONE, "Near", "a"))}]}}},
        ('running PreScore plugin "NodeAffinity": [0].matchExpressions[0].operator: Unsupported value: "Near"',),
    ),
    # --- selectors of pods that nobody can read ---
    Waits("an unknown operator in affinity", {"affinity": near(UNREADABLE)}, (f"{PARSING}requiredAffinityTerms: {NO_OPERATOR}",)),
    Waits("an unknown operator in anti-affinity", {"affinity": away(UNREADABLE)}, (f"{PARSING}requiredAntiAffinityTerms: {NO_OPERATOR}",)),
    Waits("in no values, in affinity", {"affinity": near(says(needs("app", "In")))}, (f"{PARSING}requiredAffinityTerms: {EMPTY_SET}",)),
    Waits(
        "a key that is none, in anti-affinity",
        {"affinity": away(labels(**{"a b": "x"}))},
        ('AntiAffinityTerms: key: Invalid value: "a b"',),
    ),
    Waits("a value that is none, in affinity", {"affinity": near(labels(app="a b"))}, ('AffinityTerms: values[0]: Invalid value: "a b"',)),
    Waits(
        "an unknown operator for namespaces",
        {"affinity": near({}, namespaceSelector=says(needs("team", "Near")))},
        (f"{PARSING}requiredAffinityTerms: {NO_OPERATOR}",),
    ),
    Waits(
        "an unknown operator in a preference for pods",
        {"affinity": {"podAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": {"labelSelector": UNREADABLE, "topologyKey": HOST}}]}}},
        (f"{PARSING}preferredAffinityTerms: {NO_OPERATOR}",),
    ),
    Waits("an unknown operator in spreading", spread(UNREADABLE), (f"{HARD}{NO_OPERATOR}",)),
    Waits("in no values, in spreading", spread(says(needs("app", "In"))), (f"{HARD}{EMPTY_SET}",)),
    Waits("an unknown operator in soft spreading", spread(UNREADABLE, whenUnsatisfiable="ScheduleAnyway"), (f"{SOFT}{NO_OPERATOR}",)),
)
#: What looks wrong and means something all the same, to kube-scheduler as well.
PLACED: dict[str, Object] = {
    "a smallest number of domains where spreading is a wish": spread(labels(app="web"), whenUnsatisfiable="ScheduleAnyway", minDomains=9),
    "the same domains twice": {"topologySpreadConstraints": 2 * spread(labels(app="lone"))["topologySpreadConstraints"]},
    "what nobody asks for": spread(labels(app="web"), whenUnsatisfiable="Sometimes", maxSkew=0),
    "an unreadable term beside a good one": {
        "affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [says(needs(ZONE, "Near")), says(needs(ZONE, "Exists"))]}}}
    },
    "away from a domain without a name": {"affinity": away(labels(app="web"), "")},
}


def create(stage: Stage, plural: str, name: str, content: Object, group: str = "", labels: Object | None = None) -> None:
    resource = stage.sandbox.resource(group, "v1", plural)
    body = {"metadata": {"name": name, "labels": labels or {}}, **content}
    stage.sandbox.writes.create(resource, "default" if resource.namespaced else "", body)


def leave_behind(stage: Stage, plural: str, name: str, spec: Object) -> None:
    """Store what no API server takes today, as an older one or its database may have left it."""
    resource = stage.sandbox.resource("", "v1", plural)
    stored = stage.sandbox.store.get(resource.key, "default", name)
    assert stored is not None
    stage.sandbox.store.put(resource.key, "default", name, {**copy.deepcopy(stored.object), "spec": spec})


def create_pod(stage: Stage, name: str, spec: Object, own: Object | None = None) -> None:
    container = {"name": "main", "image": "example.test/main", "resources": {"requests": {"cpu": "10m"}}}
    create(stage, "pods", name, {"spec": {"schedulerName": "placewright", "containers": [container], **spec}}, labels=own)


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    """Three zones with a node each, and a web server on the first."""
    async with new_stage() as made:
        made.profile()
        amounts = {"cpu": "4", "memory": "16Gi", "pods": "110"}
        for number, zone in enumerate("abc"):
            about = {HOST: f"node-{number}", ZONE: zone, "generation": str(number)}
            create(made, "nodes", f"node-{number}", {"status": {"allocatable": amounts, "capacity": amounts}}, labels=about)
        create_pod(made, "web", {"nodeName": "node-0"}, {"app": "web"})
        yield made


async def test_a_pod_that_makes_no_sense_waits_and_says_why(stage: Stage) -> None:
    names = {case: f"bad-{number}" for number, case in enumerate(WAITING)}
    for case, name in names.items():
        create_pod(stage, name, case.spec, case.labels)
    async with operator(stage):
        await stage.until(lambda: all(stage.condition(name) for name in names.values()))
        found = {case: str(stage.condition(name)["message"]) for case, name in names.items()}
        unsaid = {case.title: found[case] for case in WAITING if not all(part in found[case] for part in case.said)}
        assert unsaid == {}
        assert [case.title for case, name in names.items() if stage.node_of(name)] == []


async def test_a_pod_is_placed_in_spite_of_what_looks_wrong_and_means_something(stage: Stage) -> None:
    names = {title: f"odd-{number}" for number, title in enumerate(PLACED)}
    for title, name in names.items():
        create_pod(stage, name, PLACED[title], {"app": name})
    async with operator(stage):
        await stage.until(lambda: stage.placed(*names.values()))
    told = {name: ("Scheduled", f"Successfully assigned default/{name} to {stage.node_of(name)}") for name in names.values()}
    assert [title for title, name in names.items() if told[name] not in stage.events(name)] == []


async def test_nothing_else_is_touched(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    """Pods that make no sense wait among others, and stand among others: these are placed where they would have been."""
    async with operator(stage) as running:
        await stage.until(lambda: running.engine.leading.leadership.active)
        for number, case in enumerate(WAITING):
            create_pod(stage, f"bad-{number}", case.spec, case.labels)
            create_pod(stage, f"standing-{number}", {**case.spec, "nodeName": f"node-{number % 3}"}, case.labels)
        unreadable_surroundings(stage)
        selective = [f"near-{number}" for number in range(3)]
        for name in selective:
            create_pod(stage, name, {"affinity": near(labels(app="web"))})
        names = stage.pods(30) + selective
        await stage.until(lambda: stage.placed(*names))
        assert {stage.node_of(name) for name in selective} == {"node-0"}
        await stage.until(lambda: all(stage.condition(f"bad-{number}") for number in range(len(WAITING))))
        for name in (later := stage.pods(3)):
            await stage.until(partial(stage.placed, name), name)
        await stage.until(lambda: running.agrees_with(stage))
    assert stage.bound_twice() == []
    assert {uid for uid, _ in stage.bindings} >= {stage.show(name)["metadata"]["uid"] for name in (*names, *later)}
    complaints = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert [line for line in complaints if not line.startswith("pod default/bad-")] == []


def unreadable_surroundings(stage: Stage) -> None:
    """Objects around the pods, with selectors that nobody can read."""
    create(stage, "poddisruptionbudgets", "odd", {"spec": {"selector": UNREADABLE, "maxUnavailable": 0}}, "policy")
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "i"}]}}
    create(stage, "replicasets", "odd", {"spec": {"selector": UNREADABLE, "template": template, "replicas": 0}}, "apps")
    terms = [says(needs(HOST, "Near", "node-0"))]
    volume = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}
    create(stage, "persistentvolumes", "odd", {"spec": volume})
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "selector": UNREADABLE}
    create(stage, "persistentvolumeclaims", "odd", {"spec": claim})


async def test_a_pod_that_somebody_put_on_a_node_against_its_own_words_is_left_there(stage: Stage) -> None:
    create_pod(stage, "put", {"nodeName": "node-1", "nodeSelector": {ZONE: "nowhere"}, **on_nodes(needs(ZONE, "Near"))})
    async with operator(stage) as running:
        await stage.until(lambda: running.agrees_with(stage))
        (name,) = stage.pods(1)
        await stage.until(lambda: stage.placed(name))
    assert stage.node_of("put") == "node-1"
    assert stage.events("put") == []


#: By name of claim and pod: what is asked for, and what is said of it.
CLAIMS: dict[str, tuple[Object, str]] = {
    "operator": ({"selector": UNREADABLE}, f'persistentvolumeclaim "operator": spec.selector: {NO_OPERATOR}'),
    "value": ({"selector": labels(tier="a b")}, 'persistentvolumeclaim "value": spec.selector: values[0]: Invalid value: "a b"'),
    "size": ({"resources": {"requests": {"storage": "plenty"}}}, 'persistentvolumeclaim "size": spec.resources.requests.storage: '),
}


async def test_a_claim_that_makes_no_sense_keeps_its_own_pod_waiting_and_no_other(stage: Stage) -> None:
    by_hand = {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"}
    create(stage, "storageclasses", "disks", by_hand, "storage.k8s.io")
    for name, (asked, _) in CLAIMS.items():
        spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "disks", "resources": {"requests": {"storage": "1Gi"}}}
        create(stage, "persistentvolumeclaims", name, {"spec": spec})
        leave_behind(stage, "persistentvolumeclaims", name, {**spec, **asked})
        create_pod(stage, name, {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]})
    async with operator(stage):
        await stage.until(lambda: all(stage.condition(name) for name in CLAIMS))
        found = {name: stage.condition(name)["message"] for name in CLAIMS}
        assert {name: found[name] for name, (_, said) in CLAIMS.items() if said not in found[name]} == {}
        (other,) = stage.pods(1)
        await stage.until(lambda: stage.placed(other))
    assert [name for name in CLAIMS if stage.node_of(name)] == []
