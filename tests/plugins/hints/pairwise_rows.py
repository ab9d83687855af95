"""Plugins that count other pods."""

from __future__ import annotations

from typing import Final

from hints.rows import Rejected, Row
from placewright import testing as kit
from placewright.testing import node, pod
from placewright.testing.workloads import NamespaceMaker

WEB: Final = {"app": "web"}
DB: Final = {"app": "db"}
RED: Final = {"team": "red"}
GOLD: Final = {"tier": "gold"}
ZONE: Final = "zone"
ME, LABELLED_DB = pod("me", labels=WEB), pod("me", labels=DB)
ELSE, ON_NODE = pod("else"), pod("else", on="n")
A_WEB, A_DB = ON_NODE.labels(WEB), ON_NODE.labels(DB)
AWAY_WEB, AWAY_DB = A_WEB.namespace("away"), A_DB.namespace("away")
IN_1, IN_2, OUTSIDE = node("n").labels(zone="1"), node("n").labels(zone="2"), node("n")
FRONT: Final = kit.service("front")
HOME_SPACE, AWAY_SPACE = NamespaceMaker("default"), NamespaceMaker("away")
BY_TEAM: Final = {"topologyKey": ZONE, "labelSelector": {"matchLabels": DB}, "namespaceSelector": {"matchLabels": RED}}

_spread = Rejected("PodTopologySpread", ME.spread(ZONE, WEB))
_DEFAULT: Final = {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
_default = Rejected("PodTopologySpread", ME.owned_by("ReplicaSet", "mine"), {"defaultingType": "List", "defaultConstraints": [_DEFAULT]})
_all = Rejected("PodTopologySpread", ME.spread(ZONE, {}))
_honest = Rejected("PodTopologySpread", ME.spread(ZONE, WEB, nodeTaintsPolicy="Honor"))

SPREAD: Final[tuple[Row, ...]] = (
    _spread.wakes("a counted pod that appears", new=A_WEB),
    _spread.rests("a pod of another look that appears", new=A_DB),
    _spread.rests("a pod of another namespace that appears", new=AWAY_WEB),
    _spread.wakes("a counted pod that leaves", old=A_WEB),
    _spread.wakes("a counted pod with a nomination that is deleted", old=ELSE.labels(WEB).nominated("n")),
    _spread.rests("a counted pod that had no node", old=ELSE.labels(WEB)),
    _spread.rests("a pod of another look that leaves", old=A_DB),
    _spread.rests("a pod of another namespace that leaves", old=AWAY_WEB),
    _all.wakes("a pod that appears, if the selector is empty", new=A_DB),
    _all.wakes("a pod that leaves, if the selector is empty", old=A_DB),
    _all.wakes("a pod that begins to leave, if the selector is empty", "pod_terminating", old=A_DB, new=A_DB.deleting()),
    _all.rests("a pod of another namespace, if the selector is empty", old=AWAY_DB),
    _spread.wakes("a pod that begins to count", "pod_label", old=A_DB, new=A_WEB),
    _spread.wakes("a pod that ceases to count", "pod_label", old=A_WEB, new=A_DB),
    _spread.wakes("a counted pod that begins to leave", "pod_terminating", old=A_WEB, new=A_WEB.deleting()),
    _spread.rests("a pod of another look that begins to leave", "pod_terminating", old=A_DB, new=A_DB.deleting()),
    _spread.rests("a pod that counts as before", "pod_label", old=A_WEB, new=A_WEB.labels(x="")),
    _spread.rests("a pod without a node that begins to count", "pod_label", old=ELSE, new=ELSE.labels(WEB)),
    _spread.wakes("a label of its own that takes it out of the count", "pod_label", old=_spread.pod, new=LABELLED_DB.spread(ZONE, WEB)),
    _spread.rests("a label of its own that changes no count", "pod_label", old=_spread.pod, new=ME.labels(x="").spread(ZONE, WEB)),
    _honest.wakes(
        "a toleration of its own where taints are honoured",
        "pod_toleration",
        old=_honest.pod,
        new=ME.spread(ZONE, WEB, nodeTaintsPolicy="Honor").tolerates(),
    ),
    _spread.rests("a toleration of its own elsewhere", "pod_toleration", old=_spread.pod, new=ME.spread(ZONE, WEB).tolerates()),
    _honest.rests(
        "a toleration of another pod", "pod_toleration", old=ELSE.labels(WEB), new=ELSE.labels(WEB).tolerates()
    ),
    _spread.rests("another change of a counted pod", "other", old=A_WEB, new=A_WEB),
    _spread.wakes("a new node in a domain", new=IN_1),
    _spread.rests("a new node in no domain", new=OUTSIDE),
    _spread.wakes("a node of a domain that goes", old=IN_1),
    _spread.rests("a node of no domain that goes", old=OUTSIDE),
    _spread.wakes("a node that joins a domain", "node_label", old=OUTSIDE, new=IN_1),
    _spread.wakes("a node that leaves its domain", "node_label", old=IN_1, new=OUTSIDE),
    _spread.wakes("a node that moves to another domain", "node_label", old=IN_1, new=IN_2),
    _spread.rests("another label of a node", "node_label", old=IN_1, new=IN_1.labels(disk="ssd")),
    _spread.wakes("a taint of a node in a domain", "node_taint", old=IN_1.taint("k"), new=IN_1),
    _spread.rests("a taint of a node in no domain", "node_taint", old=OUTSIDE.taint("k"), new=OUTSIDE),
    _default.wakes("a Service that begins to select it", new=FRONT.selects(WEB)),
    _default.wakes("a Service that selects it no more", old=FRONT.selects(WEB), new=FRONT.selects(DB)),
    _default.rests("a Service of other pods", old=FRONT.selects(DB), new=FRONT.selects(app="cache")),
    _default.rests("a Service of another namespace", new=FRONT.namespace("away").selects(WEB)),
    _default.wakes("a Service that selected it and goes", old=FRONT.selects(WEB)),
    _default.wakes("its owner that goes", old=kit.replica_set("mine").selects(WEB)),
    _default.rests("another owner that goes", old=kit.replica_set("other").selects(WEB)),
    _spread.rests("a Service where the pod has constraints of its own", new=FRONT.selects(WEB)),
    _spread.rests("a node that grows", "node_allocatable", old=IN_1, new=IN_1.offers(cpu="9")),
)  # fmt: skip

_attracted = Rejected("InterPodAffinity", ME.pod_affinity(ZONE, DB))
_picky = Rejected("InterPodAffinity", ME.pod_affinity(ZONE, DB).pod_affinity(ZONE, GOLD))
_sociable = Rejected("InterPodAffinity", LABELLED_DB.pod_affinity(ZONE, DB), placed=(pod("wanted", on="n", labels=DB),))
_repelled = Rejected("InterPodAffinity", ME.pod_anti_affinity(ZONE, DB))
_shy = Rejected("InterPodAffinity", ME.pod_anti_affinity(ZONE, DB).pod_anti_affinity(ZONE, GOLD))
_shunned = Rejected("InterPodAffinity", ME, placed=(pod("wary", on="n", labels=DB).pod_anti_affinity(ZONE, WEB),))
_barred = Rejected("InterPodAffinity", ME.pod_anti_affinity(ZONE, DB), placed=(pod("unwanted", on="n", labels=DB),))
_attracted_by_team = Rejected(
    "InterPodAffinity", ME.spec(affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [BY_TEAM]}})
)

AFFINITY: Final[tuple[Row, ...]] = (
    _attracted.wakes("a wanted pod that appears", new=A_DB),
    _attracted.rests("another pod that appears", new=A_WEB),
    _attracted.rests("a wanted pod of another namespace that appears", new=AWAY_DB),
    _picky.wakes("a pod that meets all its terms", new=A_DB.labels(tier="gold")),
    _picky.rests("a pod that meets one of its terms", new=A_DB),
    _attracted.wakes("a pod that becomes a wanted one", "pod_label", old=ON_NODE, new=A_DB),
    _attracted.rests("a pod that was wanted before", "pod_label", old=A_DB, new=A_DB.labels(x="")),
    _attracted.rests("a pod without a node that becomes a wanted one", "pod_label", old=ELSE, new=ELSE.labels(DB)),
    _attracted.rests("a wanted pod that leaves", old=A_DB),
    _attracted.wakes("a label of its own", "pod_label", old=_attracted.pod, new=LABELLED_DB.pod_affinity(ZONE, DB)),
    _attracted.rests("a toleration of its own", "pod_toleration", old=_attracted.pod, new=ME.pod_affinity(ZONE, DB).tolerates()),
    _sociable.wakes("a wanted pod that leaves, after which it may be the first", old=A_DB),
    _sociable.rests("a pod that it does not want and that leaves", old=A_WEB),
    _sociable.wakes("a wanted pod that is so no more", "pod_label", old=A_DB, new=A_WEB),
    _sociable.rests("a wanted pod that stays so", "pod_label", old=A_DB, new=A_DB.labels(x="")),
    _sociable.wakes("a node that goes with a wanted pod", old=IN_1),
    _sociable.rests("a node without a wanted pod that goes", old=node("other").labels(zone="1")),
    _sociable.wakes("a node with a wanted pod that loses the label", "node_label", old=IN_1, new=OUTSIDE),
    _repelled.wakes("an unwanted pod that leaves", old=A_DB),
    _repelled.wakes("an unwanted pod with a nomination that is deleted", old=ELSE.labels(DB).nominated("n")),
    _repelled.rests("an unwanted pod that had no node", old=ELSE.labels(DB)),
    _repelled.rests("another pod that leaves", old=A_WEB),
    _repelled.wakes("an unwanted pod that is so no more", "pod_label", old=A_DB, new=ON_NODE),
    _repelled.rests("a pod that becomes an unwanted one", "pod_label", old=ON_NODE, new=A_DB),
    _repelled.rests("an unwanted pod that appears", new=A_DB),
    _shy.wakes("a pod that one of its terms does not want and that leaves", old=A_DB),
    _shunned.wakes("a pod that did not want it and leaves", old=pod("wary", on="n", labels=DB).pod_anti_affinity(ZONE, WEB)),
    _shunned.rests("a pod that did not want others and leaves", old=pod("wary", on="n", labels=DB).pod_anti_affinity(ZONE, DB)),
    _attracted.wakes("a new node that has the label", new=IN_1),
    _attracted.rests("a new node that lacks the label", new=OUTSIDE),
    _attracted.wakes("a node that gains the label", "node_label", old=OUTSIDE, new=IN_1),
    _attracted.wakes("a node with another value of the label", "node_label", old=IN_1, new=IN_2),
    _attracted.rests("a node that loses the label", "node_label", old=IN_1, new=OUTSIDE),
    _attracted.rests("another label of a node", "node_label", old=IN_1, new=IN_1.labels(disk="ssd")),
    _repelled.wakes("a new node, whatever its labels", new=OUTSIDE),
    _repelled.wakes("a node that loses the label it was barred by", "node_label", old=IN_1, new=OUTSIDE),
    _repelled.wakes("a node that moves to another domain", "node_label", old=IN_1, new=IN_2),
    _repelled.rests("a node that gains the label it may be barred by", "node_label", old=OUTSIDE, new=IN_1),
    _repelled.rests("another label of a node in the same domain", "node_label", old=IN_1, new=IN_1.labels(disk="ssd")),
    _shunned.wakes("a new node out of the wary pod's reach", new=OUTSIDE),
    _shunned.wakes("a node that moves out of the wary pod's domain", "node_label", old=IN_1, new=IN_2),
    _attracted.rests("a node that goes", old=IN_1),
    _shunned.wakes("a node that goes with the wary pod", old=IN_1),
    _barred.wakes("a node that goes with an unwanted pod", old=IN_1),
    _barred.rests("another node that goes", old=node("other").labels(zone="1")),
    _attracted_by_team.wakes("a new namespace with labels", new=AWAY_SPACE.labels(RED)),
    _attracted_by_team.rests("a new namespace without labels", new=AWAY_SPACE),
    _attracted_by_team.wakes("a namespace that gets a label", old=AWAY_SPACE, new=AWAY_SPACE.labels(RED)),
    _attracted_by_team.rests("another change of a namespace", old=AWAY_SPACE.labels(RED), new=AWAY_SPACE.labels(RED)),
    _attracted_by_team.wakes("a namespace that goes with its labels", old=AWAY_SPACE.labels(RED)),
    _shunned.wakes("labels of its own namespace", old=HOME_SPACE, new=HOME_SPACE.labels(RED)),
    _shunned.rests("labels of another namespace", old=AWAY_SPACE, new=AWAY_SPACE.labels(RED)),
    _shunned.rests("another namespace that goes", old=AWAY_SPACE.labels(RED)),
)  # fmt: skip

ROWS: Final = (*SPREAD, *AFFINITY)
