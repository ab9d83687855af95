"""Says whom a NetworkPolicy lets in, by the rules of Kubernetes."""

from __future__ import annotations

import ipaddress
from typing import Any

Manifest = dict[str, Any]
PEERS = [{"namespace": "monitoring"}, {"namespace": "tenant"}, {"address": "10.0.0.3"}, {"address": "192.0.2.7"}]


def lets_in(policy: Manifest, port: int) -> list[dict[str, str]]:
    """The peers that a policy lets in at a port, by the rules of NetworkPolicies."""
    rules = [rule for rule in policy["spec"]["ingress"] or [] if not rule.get("ports") or port in [each["port"] for each in rule["ports"]]]
    return [peer for peer in PEERS if any(not rule.get("from") or any(is_peer(each, peer) for each in rule["from"]) for rule in rules)]


def is_peer(named: dict[str, Any], peer: dict[str, str]) -> bool:
    if "ipBlock" in named:
        return "address" in peer and ipaddress.ip_address(peer["address"]) in ipaddress.ip_network(named["ipBlock"]["cidr"])
    wanted = named["namespaceSelector"].get("matchLabels", {})
    return "namespace" in peer and wanted.items() <= {"kubernetes.io/metadata.name": peer["namespace"]}.items()
