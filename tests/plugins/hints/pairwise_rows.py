"""Plugins that count other pods."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from hints.node_rows import TAINT, nominated
from hints.rows import (
    NAMESPACE_ADDED,
    NAMESPACE_CHANGED,
    NAMESPACE_DELETED,
    NODE_ADDED,
    NODE_DELETED,
    NODE_LABELLED,
    NODE_RESIZED,
    NODE_TAINTED,
    POD_ADDED,
    POD_CHANGED,
    POD_DELETED,
    POD_LABELLED,
    POD_TERMINATES,
    REPLICA_SET_DELETED,
    SERVICE_ADDED,
    SERVICE_CHANGED,
    SERVICE_DELETED,
    WAITING_LABELLED,
    WAITING_TOLERATES,
    Rejected,
    Row,
)
from placewright import testing as kit
from placewright.api.objects import Node
from placewright.api.pods import PodInfo
from placewright.api.workloads import Namespace, ReplicaSet, Service
from placewright.testing import node, pod
from placewright.testing.workloads import NamespaceMaker

Body = dict[str, Any]
WEB: Final = {"app": "web"}
DB: Final = {"app": "db"}
RED: Final = {"team": "red"}
ZONE: Final = "zone"
ANY_TOLERATION: Final = {"tolerations": [{"operator": "Exists"}]}
Z1, Z2 = {ZONE: "1"}, {ZONE: "2"}


def away(name: str, labels: Body) -> PodInfo:
    """A pod of another namespace, on a node."""
    return kit.pod(name, on="n", labels=labels).namespace("away").build()


def on(name: str, labels: Body, **rest: Any) -> PodInfo:
    """A pod on a node."""
    return pod(name, on="n", labels=labels, **rest).build()


def at(labels: Body, **rest: Any) -> Node:
    return node("n", labels=labels, **rest).build()


def spread(**rest: Any) -> Body:
    hard = {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": WEB}}
    return {"topologySpreadConstraints": [hard | rest]}


def term(labels: Body, key: str = ZONE) -> Body:
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}}


def near(*terms: Body) -> Body:
    return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}}


def apart(*terms: Body) -> Body:
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}}


def namespace(name: str, labels: Body | None = None) -> Namespace:
    return NamespaceMaker(name).labels(labels).build()


def leaving(info: PodInfo) -> PodInfo:
    meta = msgspec.structs.replace(info.pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    return PodInfo(msgspec.structs.replace(info.pod, metadata=meta))


def service(selector: Body, where: str = "default") -> Service:
    return kit.service("front").namespace(where).selects(selector).build()


def replica_set(name: str) -> ReplicaSet:
    return kit.replica_set(name).selects(WEB).build()


def owned(labels: Body) -> PodInfo:
    """The rejected pod, of the ReplicaSet `mine`."""
    return kit.pod("me", labels=labels).owned_by("ReplicaSet", "mine").build()


def me(spec: Body, labels: Body | None = None) -> PodInfo:
    return pod("me", labels=WEB if labels is None else labels, **spec).build()


_spread = Rejected("PodTopologySpread", me(spread()))
_DEFAULT: Final = {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
_default = Rejected("PodTopologySpread", owned(WEB), {"defaultingType": "List", "defaultConstraints": [_DEFAULT]})
_honest = Rejected("PodTopologySpread", me(spread(nodeTaintsPolicy="Honor")))

SPREAD: Final[tuple[Row, ...]] = (
    _spread.wakes("a counted pod that appears", POD_ADDED, new=on("else", WEB)),
    _spread.rests("a pod of another look that appears", POD_ADDED, new=on("else", DB)),
    _spread.rests("a pod of another namespace that appears", POD_ADDED, new=away("else", WEB)),
    _spread.wakes("a counted pod that leaves", POD_DELETED, old=on("else", WEB)),
    _spread.wakes("a counted pod with a nomination that is deleted", POD_DELETED, old=nominated(pod("else", labels=WEB).build())),
    _spread.rests("a counted pod that had no node", POD_DELETED, old=pod("else", labels=WEB)),
    _spread.rests("a pod of another look that leaves", POD_DELETED, old=on("else", DB)),
    _spread.rests("a pod of another namespace that leaves", POD_DELETED, old=away("else", WEB)),
    _spread.wakes("a pod that begins to count", POD_LABELLED, old=on("else", DB), new=on("else", WEB)),
    _spread.wakes("a pod that ceases to count", POD_LABELLED, old=on("else", WEB), new=on("else", DB)),
    _spread.wakes("a counted pod that begins to leave", POD_TERMINATES, old=on("else", WEB), new=leaving(on("else", WEB))),
    _spread.rests("a pod of another look that begins to leave", POD_TERMINATES, old=on("else", DB), new=leaving(on("else", DB))),
    _spread.rests("a pod that counts as before", POD_LABELLED, old=on("else", WEB), new=on("else", WEB | {"x": ""})),
    _spread.rests("a pod without a node that begins to count", WAITING_LABELLED, old=pod("else"), new=pod("else", labels=WEB)),
    _spread.wakes("a label of its own that takes it out of the count", WAITING_LABELLED, old=me(spread()), new=me(spread(), DB)),
    _spread.rests("a label of its own that changes no count", WAITING_LABELLED, old=me(spread()), new=me(spread(), WEB | {"x": ""})),
    _honest.wakes(
        "a toleration of its own where taints are honoured",
        WAITING_TOLERATES,
        old=_honest.pod,
        new=me(spread(nodeTaintsPolicy="Honor") | ANY_TOLERATION),
    ),
    _spread.rests("a toleration of its own elsewhere", WAITING_TOLERATES, old=me(spread()), new=me(spread() | ANY_TOLERATION)),
    _honest.rests(
        "a toleration of another pod", WAITING_TOLERATES, old=pod("else", labels=WEB), new=pod("else", labels=WEB, **ANY_TOLERATION)
    ),
    _spread.rests("another change of a counted pod", POD_CHANGED, old=on("else", WEB), new=on("else", WEB)),
    _spread.wakes("a new node in a domain", NODE_ADDED, new=at(Z1)),
    _spread.rests("a new node in no domain", NODE_ADDED, new=at({})),
    _spread.wakes("a node of a domain that goes", NODE_DELETED, old=at(Z1)),
    _spread.rests("a node of no domain that goes", NODE_DELETED, old=at({})),
    _spread.wakes("a node that joins a domain", NODE_LABELLED, old=at({}), new=at(Z1)),
    _spread.wakes("a node that leaves its domain", NODE_LABELLED, old=at(Z1), new=at({})),
    _spread.wakes("a node that moves to another domain", NODE_LABELLED, old=at(Z1), new=at(Z2)),
    _spread.rests("another label of a node", NODE_LABELLED, old=at(Z1), new=at(Z1 | {"disk": "ssd"})),
    _spread.wakes("a taint of a node in a domain", NODE_TAINTED, old=at(Z1, spec={"taints": [TAINT]}), new=at(Z1)),
    _spread.rests("a taint of a node in no domain", NODE_TAINTED, old=at({}, spec={"taints": [TAINT]}), new=at({})),
    _default.wakes("a Service that begins to select it", SERVICE_ADDED, new=service(WEB)),
    _default.wakes("a Service that selects it no more", SERVICE_CHANGED, old=service(WEB), new=service(DB)),
    _default.rests("a Service of other pods", SERVICE_CHANGED, old=service(DB), new=service({"app": "cache"})),
    _default.rests("a Service of another namespace", SERVICE_ADDED, new=service(WEB, "away")),
    _default.wakes("a Service that selected it and goes", SERVICE_DELETED, old=service(WEB)),
    _default.wakes("its owner that goes", REPLICA_SET_DELETED, old=replica_set("mine")),
    _default.rests("another owner that goes", REPLICA_SET_DELETED, old=replica_set("other")),
    _spread.rests("a Service where the pod has constraints of its own", SERVICE_ADDED, new=service(WEB)),
    _spread.rests("a node that grows", NODE_RESIZED, old=at(Z1), new=at(Z1, cpu="9")),
)  # fmt: skip

_attracted = Rejected("InterPodAffinity", me(near(term(DB))))
_picky = Rejected("InterPodAffinity", me(near(term(DB), term({"tier": "gold"}))))
_sociable = Rejected("InterPodAffinity", me(near(term(DB)), DB), placed=(on("wanted", DB),))
_repelled = Rejected("InterPodAffinity", me(apart(term(DB))))
_shy = Rejected("InterPodAffinity", me(apart(term(DB), term({"tier": "gold"}))))
_shunned = Rejected("InterPodAffinity", me({}), placed=(on("wary", DB, **apart(term(WEB))),))
_barred = Rejected("InterPodAffinity", me(apart(term(DB))), placed=(on("unwanted", DB),))
_attracted_by_team = Rejected("InterPodAffinity", me(near(term(DB) | {"namespaceSelector": {"matchLabels": RED}})))

AFFINITY: Final[tuple[Row, ...]] = (
    _attracted.wakes("a wanted pod that appears", POD_ADDED, new=on("else", DB)),
    _attracted.rests("another pod that appears", POD_ADDED, new=on("else", WEB)),
    _attracted.rests("a wanted pod of another namespace that appears", POD_ADDED, new=away("else", DB)),
    _picky.wakes("a pod that meets all its terms", POD_ADDED, new=on("else", DB | {"tier": "gold"})),
    _picky.rests("a pod that meets one of its terms", POD_ADDED, new=on("else", DB)),
    _attracted.wakes("a pod that becomes a wanted one", POD_LABELLED, old=on("else", {}), new=on("else", DB)),
    _attracted.rests("a pod that was wanted before", POD_LABELLED, old=on("else", DB), new=on("else", DB | {"x": ""})),
    _attracted.rests("a pod without a node that becomes a wanted one", WAITING_LABELLED, old=pod("else"), new=pod("else", labels=DB)),
    _attracted.rests("a wanted pod that leaves", POD_DELETED, old=on("else", DB)),
    _attracted.wakes("a label of its own", WAITING_LABELLED, old=_attracted.pod, new=me(near(term(DB)), DB)),
    _attracted.rests("a toleration of its own", WAITING_TOLERATES, old=_attracted.pod, new=me(near(term(DB)) | ANY_TOLERATION)),
    _sociable.wakes("a wanted pod that leaves, after which it may be the first", POD_DELETED, old=on("else", DB)),
    _sociable.rests("a pod that it does not want and that leaves", POD_DELETED, old=on("else", WEB)),
    _sociable.wakes("a wanted pod that is so no more", POD_LABELLED, old=on("else", DB), new=on("else", WEB)),
    _sociable.rests("a wanted pod that stays so", POD_LABELLED, old=on("else", DB), new=on("else", DB | {"x": ""})),
    _sociable.wakes("a node that goes with a wanted pod", NODE_DELETED, old=at(Z1)),
    _sociable.rests("a node without a wanted pod that goes", NODE_DELETED, old=node("other", labels=Z1)),
    _sociable.wakes("a node with a wanted pod that loses the label", NODE_LABELLED, old=at(Z1), new=at({})),
    _repelled.wakes("an unwanted pod that leaves", POD_DELETED, old=on("else", DB)),
    _repelled.wakes("an unwanted pod with a nomination that is deleted", POD_DELETED, old=nominated(pod("else", labels=DB).build())),
    _repelled.rests("an unwanted pod that had no node", POD_DELETED, old=pod("else", labels=DB)),
    _repelled.rests("another pod that leaves", POD_DELETED, old=on("else", WEB)),
    _repelled.wakes("an unwanted pod that is so no more", POD_LABELLED, old=on("else", DB), new=on("else", {})),
    _repelled.rests("a pod that becomes an unwanted one", POD_LABELLED, old=on("else", {}), new=on("else", DB)),
    _repelled.rests("an unwanted pod that appears", POD_ADDED, new=on("else", DB)),
    _shy.wakes("a pod that one of its terms does not want and that leaves", POD_DELETED, old=on("else", DB)),
    _shunned.wakes("a pod that did not want it and leaves", POD_DELETED, old=on("wary", DB, **apart(term(WEB)))),
    _shunned.rests("a pod that did not want others and leaves", POD_DELETED, old=on("wary", DB, **apart(term(DB)))),
    _attracted.wakes("a new node that has the label", NODE_ADDED, new=at(Z1)),
    _attracted.rests("a new node that lacks the label", NODE_ADDED, new=at({})),
    _attracted.wakes("a node that gains the label", NODE_LABELLED, old=at({}), new=at(Z1)),
    _attracted.wakes("a node with another value of the label", NODE_LABELLED, old=at(Z1), new=at(Z2)),
    _attracted.rests("a node that loses the label", NODE_LABELLED, old=at(Z1), new=at({})),
    _attracted.rests("another label of a node", NODE_LABELLED, old=at(Z1), new=at(Z1 | {"disk": "ssd"})),
    _repelled.wakes("a new node, whatever its labels", NODE_ADDED, new=at({})),
    _repelled.wakes("a node that loses the label it was barred by", NODE_LABELLED, old=at(Z1), new=at({})),
    _repelled.wakes("a node that moves to another domain", NODE_LABELLED, old=at(Z1), new=at(Z2)),
    _repelled.rests("a node that gains the label it may be barred by", NODE_LABELLED, old=at({}), new=at(Z1)),
    _repelled.rests("another label of a node in the same domain", NODE_LABELLED, old=at(Z1), new=at(Z1 | {"disk": "ssd"})),
    _shunned.wakes("a new node out of the wary pod's reach", NODE_ADDED, new=at({})),
    _shunned.wakes("a node that moves out of the wary pod's domain", NODE_LABELLED, old=at(Z1), new=at(Z2)),
    _attracted.rests("a node that goes", NODE_DELETED, old=at(Z1)),
    _shunned.wakes("a node that goes with the wary pod", NODE_DELETED, old=at(Z1)),
    _barred.wakes("a node that goes with an unwanted pod", NODE_DELETED, old=at(Z1)),
    _barred.rests("another node that goes", NODE_DELETED, old=node("other", labels=Z1)),
    _attracted_by_team.wakes("a new namespace with labels", NAMESPACE_ADDED, new=namespace("away", RED)),
    _attracted_by_team.rests("a new namespace without labels", NAMESPACE_ADDED, new=namespace("away")),
    _attracted_by_team.wakes("a namespace that gets a label", NAMESPACE_CHANGED, old=namespace("away"), new=namespace("away", RED)),
    _attracted_by_team.rests("another change of a namespace", NAMESPACE_CHANGED, old=namespace("away", RED), new=namespace("away", RED)),
    _attracted_by_team.wakes("a namespace that goes with its labels", NAMESPACE_DELETED, old=namespace("away", RED)),
    _shunned.wakes("labels of its own namespace", NAMESPACE_CHANGED, old=namespace("default"), new=namespace("default", RED)),
    _shunned.rests("labels of another namespace", NAMESPACE_CHANGED, old=namespace("away"), new=namespace("away", RED)),
    _shunned.rests("another namespace that goes", NAMESPACE_DELETED, old=namespace("away", RED)),
)  # fmt: skip

ROWS: Final = (*SPREAD, *AFFINITY)
