"""Which of upstream's specs nobody can pass here, and why: nodes are simulated, so nothing is executed on them and nothing listens.

A spec is on this list when it fails with kube-scheduler on the same nodes, too (`--scheduler kube-scheduler --all` shows it).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Specs whose full name matches a regular expression, in what Go and Python both understand of it."""

    pattern: str
    reason: str


LEFT_OUT: Final = (
    LeftOut(
        r"no conflict between pods with same hostPort but different hostIP and protocol.*\[Conformance\]",
        "executes curl in a pod, against what listens in others",
    ),
    LeftOut(r"\[Feature:GPUDevicePlugin\]", "downloads a vendor's driver, and runs it on nodes"),
    LeftOut(r"\[DRA\] (\[[^]]*\] )*(kubelet |\[Feature:DynamicResourceAllocation\])", "runs a DRA driver in pods, beside a real kubelet"),
)
_GATE: Final = re.compile(r"\[FeatureGate:([A-Za-z0-9]+)\]")
_OFF: Final = "[Feature:OffByDefault]"


def reason_to_leave_out(spec: str, gates: Collection[str]) -> str:
    """Why a spec is not run where these feature gates are on beyond the defaults; empty for one that is."""
    for each in LEFT_OUT:
        if re.search(each.pattern, spec):
            return each.reason
    lacking = [gate for gate in _GATE.findall(spec) if gate not in gates] if _OFF in spec else []
    return f"its feature gate is off: {', '.join(lacking)}" if lacking else ""
