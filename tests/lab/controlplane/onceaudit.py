"""Whether every pod was bound exactly once: the Bindings of an audit log held against the nodes of pods.

The log has one JSON line a request, written when the answer has been given; that is after the change is in etcd, and the client may
have the answer first. So a log of a server that was never killed is complete, and what it does not hold did not happen. A killed server
may leave a half-written line, onto which the next server writes its first one, and changes without any line. What can be concluded then:

- A line with an answer is true, crash or not. Two answers "created" for one uid, or one for another node than the pod is on, are a fault.
- A pod on a node without any answered Binding is a fault of a complete log, and tells nothing in a log with a crash in it: the line, or the
  whole request, may be the one that got lost. Only their number tells: no more than may have been under way at each crash.
- An answer of 5xx leaves open what happened, and so does 409: the API server says it of any Binding whose write it could not see
  through, one whose client was killed among them. A pod on the node that was asked for is explained by such an answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from placewright.api.objects import NodeName, PodKey
from placewright.kube.errors import CONFLICT
from placewright_lab.controlplane.audit import Record


class _Named(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""


class _Binding(msgspec.Struct, frozen=True):
    metadata: _Named = _Named()
    target: _Named = _Named()


@dataclass(frozen=True, slots=True)
class BindingRequest:
    """One requested Binding: the pod (name and uid), the node, and the HTTP status of the answer."""

    pod: PodKey
    uid: str
    node: NodeName
    code: int

    @property
    def bound(self) -> bool:
        """Whether the server said that it is done."""
        return 200 <= self.code < 300

    @property
    def open(self) -> bool:
        """Whether the answer leaves open what happened."""
        return self.code in (0, CONFLICT) or self.code >= 500


def binding_requests(records: Iterable[Record]) -> list[BindingRequest]:
    """Return all requested Bindings, in the order of their answers."""
    return [_binding_request(each) for each in records if each.resource == "pods/binding" and each.verb == "create"]


def _binding_request(record: Record) -> BindingRequest:
    asked = msgspec.json.decode(record.request_object, type=_Binding) if bytes(record.request_object) else _Binding()
    pod = PodKey(f"{record.object_ref.namespace}/{record.object_ref.name or asked.metadata.name}")
    return BindingRequest(pod, asked.metadata.uid, NodeName(asked.target.name), record.code)


@dataclass(frozen=True, slots=True)
class OnceAudit:
    """The result of an audit.

    Attributes:
        faults: sentences; empty if all is well.
        unexplained: uids of pods on nodes without a Binding in the log, which are faults if the log is complete.
        refused: Bindings that the server refused, mostly for pods that were gone, or already on a node.
    """

    faults: tuple[str, ...]
    unexplained: tuple[str, ...]
    refused: tuple[BindingRequest, ...]


def exactly_once(requests: Sequence[BindingRequest], nodes: Mapping[str, NodeName]) -> OnceAudit:
    """Compare the Bindings of a log with the pods' final nodes, by uid. "" means a pod that is on no node.

    `nodes` has the existing pods. It may have deleted ones with their last node. It has no pods that were created on a node, because they
    need no Binding.
    """
    by_uid: dict[str, list[BindingRequest]] = defaultdict(list)
    for request in requests:
        by_uid[request.uid].append(request)
    faults = [fault for uid, asked in by_uid.items() if (fault := _fault(asked, nodes.get(uid)))]
    unexplained = (uid for uid, node in nodes.items() if node and not _explained(by_uid.get(uid, ()), node))
    return OnceAudit(tuple(faults), tuple(unexplained), tuple(each for each in requests if 400 <= each.code < 500))


def _fault(asked: Sequence[BindingRequest], node: NodeName | None) -> str:
    bound = [each for each in asked if each.bound]
    if len(bound) > 1:
        return f"pod {asked[0].pod} was bound {len(bound)} times: to {', '.join(each.node for each in bound)}"
    if bound and node is not None and node != bound[0].node:
        return f"pod {asked[0].pod} was bound to {bound[0].node}, and is on {node or 'no node'}"
    return ""


def _explained(asked: Sequence[BindingRequest], node: NodeName) -> bool:
    return any(each.bound or (each.open and each.node == node) for each in asked)
