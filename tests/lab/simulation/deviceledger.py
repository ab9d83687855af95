"""Keeps book of every claim that is ever shown, by the rules' plain meaning: no device twice, nobody named twice, nothing left over.

Shares no code with the plugin: claims are read as JSON.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

Device = tuple[str, str, str]


class Ledger:
    """The claims that the API server shows, and the pods on each node."""

    def __init__(self) -> None:
        self.claims: dict[str, dict[str, Any]] = {}
        self.wrong: list[str] = []
        self.written = 0
        self.given = 0

    def shows(self, claim: object) -> None:
        """Note the present state of a claim."""
        body = msgspec.json.decode(msgspec.json.encode(claim))
        name = body["metadata"]["name"]
        before = self.claims.get(name)
        self.claims[name] = body
        self.written += 1
        self.given += bool(_devices(body)) and not (before is not None and list(_devices(before)))
        twice = [device for device, times in Counter(self.taken()).items() if times > 1]
        if twice:
            self.wrong.append(f"write {self.written} of {name}: {twice} are given away twice")
        had, has = list(_devices(before or {})), list(_devices(body))
        if had and has and had != has:
            self.wrong.append(f"write {self.written}: {name} has {has} instead of {had} while it was allocated")
        users = [user["uid"] for user in body.get("status", {}).get("reservedFor") or ()]
        if users and not body.get("status", {}).get("allocation"):
            self.wrong.append(f"write {self.written}: {name} is reserved for {users} without an allocation")
        if len(users) != len(set(users)):
            self.wrong.append(f"write {self.written}: {name} names a pod twice: {users}")

    def hides(self, claim: Any) -> None:
        """Note that a claim is gone."""
        self.claims.pop(claim.metadata.name, None)

    def taken(self) -> list[Device]:
        """Count every device in the claims."""
        return [device for body in self.claims.values() for device in _devices(body)]

    def bound(self, pod: Any) -> None:
        """Check that the claims of a bound pod exist, have devices of its node, and name the pod."""
        statuses = {each.name: each.resource_claim_name for each in pod.pod.status.resource_claim_statuses or ()}
        for entry in pod.pod.spec.resource_claims or ():
            name = entry.resource_claim_name or statuses.get(entry.name)
            body = self.claims.get(str(name))
            if body is None:
                self.wrong.append(f"{pod.name} is bound without its claim {name}")
                continue
            pools = {pool for _, pool, _ in _devices(body)}
            if pools != {pod.node_name}:
                self.wrong.append(f"{pod.name} is bound to {pod.node_name}, its claim {name} has devices of {sorted(pools)}")
            if pod.uid not in [user["uid"] for user in body.get("status", {}).get("reservedFor") or ()]:
                self.wrong.append(f"{pod.name} is bound, and its claim {name} does not name it")


def _devices(body: dict[str, Any]) -> Iterator[Device]:
    allocation = (body.get("status") or {}).get("allocation") or {}
    for result in (allocation.get("devices") or {}).get("results") or ():
        yield result["driver"], result["pool"], result["device"]
