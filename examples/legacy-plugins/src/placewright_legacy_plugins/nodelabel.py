"""NodeLabel: only nodes that have some labels and lack others, whatever the values. Implements Filter, Score.

kube-scheduler shipped it up to 1.22. Unlike NodeAffinity it asks the same of the nodes for every pod of the profile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Final

import msgspec
import numpy as np

from placewright.api.bad_input import in_json
from placewright.api.objects import Node
from placewright.api.pods import NO_LABELS, PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.constraints import not_empty
from placewright.framework.events import Action, ClusterEventWithHint, EventResource, QueueingHint, event_with_hint
from placewright.framework.filters import ConstantReasonFilter
from placewright.framework.interface import MAX_NODE_SCORE, BoolColumn, CycleState, IntColumn, Rows, ScorePlugin
from placewright.framework.status import unresolvable

NAME: Final = "NodeLabel"
REASON: Final = "node(s) didn't have the requested labels"

#: (path inside args, what was found, what is allowed)
Problem = tuple[str, str, str]
Label = Annotated[str, not_empty("the key of a node label")]


class NodeLabelArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Keys of labels: those a node must have and must not have, and those it had better have and not have."""

    present_labels: tuple[Label, ...] = ()
    absent_labels: tuple[Label, ...] = ()
    present_labels_preference: tuple[Label, ...] = ()
    absent_labels_preference: tuple[Label, ...] = ()

    def validate(self) -> list[Problem]:
        """No label can be wanted both there and away."""
        return [
            *_contradictions("presentLabels", self.present_labels, "absentLabels", self.absent_labels),
            *_contradictions(
                "presentLabelsPreference",
                self.present_labels_preference,
                "absentLabelsPreference",
                self.absent_labels_preference,
            ),
        ]


def _contradictions(path: str, present: Sequence[str], other: str, absent: Sequence[str]) -> Iterator[Problem]:
    for i, label in enumerate(present):
        if label in absent:
            yield f"{path}[{i}]", in_json(label), f"a label that is not in {other}, where this is [{absent.index(label)}]"


class NodeLabel(ConstantReasonFilter[NodeLabelArgs], ScorePlugin):
    """Rejects nodes by the labels they have, and prefers some."""

    name = NAME
    rejection = unresolvable(REASON)

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        """Pass nodes with all of the present labels and none of the absent labels."""
        passes = np.ones(len(rows), np.bool_)
        for key in self.args.present_labels:
            passes &= _has(cluster, key, rows)
        for key in self.args.absent_labels:
            passes &= ~_has(cluster, key, rows)
        return passes

    def score(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> IntColumn:
        """100 for each preference that the node meets, divided by how many there are; 0 where there are none."""
        met = np.zeros(len(rows), np.int64)
        for key in self.args.present_labels_preference:
            met += _has(cluster, key, rows)
        for key in self.args.absent_labels_preference:
            met += ~_has(cluster, key, rows)
        wishes = len(self.args.present_labels_preference) + len(self.args.absent_labels_preference)
        return MAX_NODE_SCORE * met // max(wishes, 1)

    def events(self) -> Sequence[ClusterEventWithHint[Node]]:
        """Return the event of a node that gets the right labels. If the plugin rejects no node, return none."""
        if not (self.args.present_labels or self.args.absent_labels):
            return ()
        return (event_with_hint(EventResource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, self._node_suits_now),)

    def _node_suits_now(self, _pod: PodInfo, old: Node | None, new: Node | None) -> QueueingHint:
        helps = new is not None and self._suits(new) and not (old is not None and self._suits(old))
        return QueueingHint.QUEUE if helps else QueueingHint.SKIP

    def _suits(self, node: Node) -> bool:
        labels: Mapping[str, str] = node.metadata.labels or NO_LABELS
        return _all(self.args.present_labels, labels) and not _any(self.args.absent_labels, labels)


def _has(cluster: Cluster, key: str, rows: Rows) -> BoolColumn:
    return np.not_equal(cluster.label(key).codes(rows), 0)


def _all(keys: Iterable[str], labels: Mapping[str, str]) -> bool:
    return all(key in labels for key in keys)


def _any(keys: Iterable[str], labels: Mapping[str, str]) -> bool:
    return any(key in labels for key in keys)
