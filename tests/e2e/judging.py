"""Who might bind, and who did, by the API server's audit log alone: nothing that a replica says about itself is heard.

A replica is told by the pod that its token is bound to. The log has two times of each request, when it came and when it was answered; what
it wrote came to be in between. Judged is only what is sure:

- **The lead.** A Binding that came after another replica's write of the Lease was answered, or the release, is one too many; so is one that
  came later after the last renewal than the Lease says that it holds. Writes are put in order by the version that each replaced: answers
  may overtake each other.
- **Once.** No pod has two Bindings answered with success, and each pod is on the node of its Binding
  (`placewright_lab.controlplane.audit`).
- **Room.** When a Binding of ours is answered, all of ours before it and all that others were granted more than `GRACE` seconds before fit
  the node with it: nobody can know of what happened while a decision was under way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from math import inf
from pathlib import Path
from typing import Final

import msgspec

from lab.controlplane.onceaudit import BindingRequest, binding_requests
from placewright_lab.controlplane.audit import Record, records_of

#: Of the Lease.
NAME: Final = "placewright"
#: Seconds that a decision may take to become a Binding, on a loaded machine.
GRACE: Final = 2.0

_READING: Final = ("get", "list", "watch")


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = ""
    lease_duration_seconds: int | None = 0


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    resource_version: str = "0"


class _Lease(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec


def seconds(timestamp: str) -> float:
    """RFC 3339 as seconds since 1970."""
    return datetime.fromisoformat(timestamp).timestamp()


class LogReader:
    """Reads an audit log as it grows, each line once."""

    def __init__(self, log: Path) -> None:
        """From its present end on."""
        self._log = log
        self._offset = log.stat().st_size
        self._records: list[Record] = []

    def records(self) -> list[Record]:
        """Every request that was answered since then, in the order of the answers."""
        with self._log.open("rb") as file:
            file.seek(self._offset)
            content = file.read()
        complete = content.rfind(b"\n") + 1
        self._offset += complete
        self._records += records_of(content[:complete].splitlines())
        return self._records


@dataclass(frozen=True, slots=True)
class LeaseWrite:
    """One write of the Lease that came to be, or that may have.

    Attributes:
        replica: who wrote.
        holder: whom it makes the holder; empty: it is released.
        received, answered: seconds since 1970; it came to be in between.
        lasts: for how long others wait, seconds.
        replaced: version of the Lease that it replaced, 0 for none.
        sure: whether the server said that it came to be.
    """

    replica: str
    holder: str
    received: float
    answered: float
    lasts: float
    replaced: int
    sure: bool


@dataclass(frozen=True, slots=True)
class Binding:
    """One Binding: who asked when for what; `code` and when it was answered. `replica` is empty for somebody else."""

    replica: str
    received: float
    answered: float
    asked: BindingRequest

    def __str__(self) -> str:
        return f"{self.replica}'s Binding of {self.asked.pod} to {self.asked.node} (answered {self.asked.code})"


def bindings(records: Iterable[Record]) -> list[Binding]:
    """All Bindings in the order of their answers."""
    asked = [(each, one) for each in records for one in binding_requests([each])]
    return [Binding(each.pod, seconds(each.request_received_timestamp), seconds(each.stage_timestamp), one) for each, one in asked]


def lease_writes(records: Iterable[Record]) -> list[LeaseWrite]:
    """Writes of the Lease in the order in which they came to be; those that surely did not are left out."""
    found = [write for each in records if _writes_a_lease(each) and (write := _lease_write(each)) is not None]
    sure = {each.replaced for each in found if each.sure and each.replaced}
    return sorted((each for each in found if each.sure or each.replaced not in sure), key=lambda each: each.replaced)


def _writes_a_lease(record: Record) -> bool:
    return record.resource == "leases" and record.verb in ("create", "update") and "dryRun" not in record.request_uri


def _lease_write(record: Record) -> LeaseWrite | None:
    """None for one that was refused, or came to an end before its body was read; or is of another Lease."""
    open_answer = record.code == 0 or record.code >= 500
    if (record.code >= 300 and not open_answer) or not bytes(record.request_object):
        return None
    lease = msgspec.json.decode(record.request_object, type=_Lease)
    if lease.metadata.name != NAME:
        return None
    return LeaseWrite(
        replica=record.pod,
        holder=(lease.spec.holder_identity or "").partition("/")[0],
        received=seconds(record.request_received_timestamp),
        answered=seconds(record.stage_timestamp),
        lasts=lease.spec.lease_duration_seconds or 0,
        replaced=int(lease.metadata.resource_version or 0),
        sure=not open_answer,
    )


def reigns(writes: Iterable[LeaseWrite]) -> list[str]:
    """Who held the Lease, one after the other, by what surely came to be; a release is no holder."""
    holders = [each.holder for each in writes if each.sure and each.holder]
    return [each for number, each in enumerate(holders) if number == 0 or holders[number - 1] != each]


def without_the_lead(writes: Sequence[LeaseWrite], sent: Iterable[Binding]) -> list[str]:
    """A line for each Binding by a replica that surely had not, or no longer, the lead when it came."""
    strange = [f"{each.replica or 'somebody'} made {each.holder} the holder" for each in writes if each.holder not in ("", each.replica)]
    return strange + [f"{each}: {why}" for each in sent if each.replica and (why := _why_not(writes, each))]


def _why_not(writes: Sequence[LeaseWrite], sent: Binding) -> str:
    surely = max((number for number, each in enumerate(writes) if each.sure and each.answered < sent.received), default=0)
    possible = [each for each in writes[surely:] if each.received < sent.received]
    own = [each for each in possible if each.holder == sent.replica]
    if not possible:
        return "nobody held the Lease yet"
    if not own:
        last = possible[-1]
        who = f"{last.holder} had taken the Lease" if last.holder else f"{last.replica} had released the Lease"
        return f"it came {sent.received - last.answered:.3f} s after {who}"
    late = sent.received - (own[-1].answered + own[-1].lasts)
    return f"it came {late:.3f} s after its Lease had run out" if late > 0 else ""


def overcommitted(sent: Iterable[Binding], asks: Mapping[str, Fraction], room: Mapping[str, Fraction]) -> list[str]:
    """A line for each Binding of ours without room. `asks`: by uid, `room`: by node, in one unit. What is not in `asks` is not counted."""
    placed: dict[str, list[tuple[Binding, Fraction]]] = defaultdict(list)
    faults = []
    for each in sorted((one for one in sent if one.asked.bound and one.asked.uid in asks), key=lambda one: one.answered):
        node, wanted = each.asked.node, asks[each.asked.uid]
        known = (ask for other, ask in placed[node] if other.replica or other.answered < each.answered - GRACE)
        used = sum(known, wanted)
        if each.replica and used > room.get(node, Fraction(0)):
            faults.append(f"{each}: {used} are then used of {room.get(node, Fraction(0))}")
        placed[node].append((each, wanted))
    return faults


def first_binding(sent: Iterable[Binding], after: float, replica: str = "") -> Binding | None:
    """The first that was granted of those that came later: any replica's, or this one's."""
    later = (each for each in sent if each.asked.bound and each.received > after and each.replica)
    return min((each for each in later if replica in ("", each.replica)), key=lambda each: each.received, default=None)


def first_write(records: Iterable[Record], after: float) -> float:
    """When the first write, by anybody, was granted of those that came later; seconds since 1970, infinity for never."""
    granted = (each for each in records if each.verb not in _READING and 200 <= each.code < 300)
    return min((seconds(each.stage_timestamp) for each in granted if seconds(each.request_received_timestamp) > after), default=inf)
