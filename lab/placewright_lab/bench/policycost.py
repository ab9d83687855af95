"""Measures what each plugin of policy costs: two schedulers decide the same pods, and one of them has the plugin.

They are decided in slices, each side in its turn, as in `recordcost`. Pods are plain, because they have the cheapest decisions, and each
is one of `SERVICES` services. No pod becomes Ready, so that nodes reach their limit of starting pods.
"""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from placewright.api.annotations import DOMAIN_LIMITS
from placewright.api.profile import PluginConfig, PluginRef, Plugins, PluginSet, default_profile
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.offline.kinds import Manifest
from placewright.plugins.catalog import in_tree
from placewright.profiles.resolve import resolve
from placewright_lab.bench.decisions import WARM_UP
from placewright_lab.bench.recordcost import SLICE, Side, in_turns
from placewright_lab.bench.workloads import HOSTNAME, WORKLOADS, ZONE

SERVICES: Final = 100
_SERVICE: Final = "service"
_WORKLOAD: Final = WORKLOADS["plain"]

_Arguments = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Policy:
    """Plugins as a profile has them.

    Attributes:
        plugins: the arguments of each.
        labelled: pods have a service; else the plugins find nothing to do.
        annotation: a limit of the pods' own.
    """

    plugins: _Arguments
    labelled: bool = True
    annotation: str = ""


def _limit(key: str, most: int, **more: Any) -> _Arguments:
    selector = {"matchExpressions": [{"key": _SERVICE, "operator": "Exists"}]}
    return {"DomainLimit": {"limits": [{"selector": selector, "matchLabelKeys": [_SERVICE], "topologyKey": key, "max": most, **more}]}}


_START_RATE: Final[_Arguments] = {"NodeStartRate": {"maxStarting": 10}}
_REJECTIONS: Final[_Arguments] = {"NodeRejections": {}}

POLICIES: Final[Mapping[str, Policy]] = {
    "limit, of no pod": Policy(_limit(HOSTNAME, 2), labelled=False),
    "limit a node": Policy(_limit(HOSTNAME, 2)),
    "limit a node, of the pod": Policy({"DomainLimit": {}}, annotation=f"2 per {HOSTNAME} of {_SERVICE}"),
    "limit a zone": Policy(_limit(ZONE, 1000)),
    "limit a node, preferred and exceeded": Policy(_limit(HOSTNAME, 1, mode="Preferred")),
    "starts a node": Policy(_START_RATE),
    "starts a node and a zone": Policy({"NodeStartRate": {"maxStarting": 10, "domains": [{"topologyKey": ZONE, "maxStarting": 5000}]}}),
    "rejections": Policy(_REJECTIONS),
    "all three": Policy({**_limit(HOSTNAME, 2), **_START_RATE, **_REJECTIONS}),
}


@dataclass(frozen=True, slots=True)
class PolicyCost:
    """The result of a measurement.

    Attributes:
        without, with_policy: seconds of processor time of each slice, in the order of slices.
    """

    policy: str
    nodes: int
    pods: int
    without: tuple[float, ...]
    with_policy: tuple[float, ...]

    @property
    def microseconds_without(self) -> float:
        """The time of one decision without the plugins, by the median slice."""
        return statistics.median(self.without) / SLICE * 1e6

    @property
    def share(self) -> float:
        """Decisions a second with the plugins as a share of those without: of the median slices."""
        return statistics.median(self.without) / statistics.median(self.with_policy)

    @property
    def quartiles(self) -> tuple[float, float]:
        """The first and the third quartile of the shares of neighbouring slices."""
        shares = [one / other for one, other in zip(self.without, self.with_policy, strict=True)]
        low, _, high = statistics.quantiles(shares, n=4, method="inclusive")
        return low, high


def measure_policy(name: str, nodes: int, slices: int) -> PolicyCost:
    """Decide so many slices of pods with the plugins of a policy, and without.

    Args:
        name: one of `POLICIES`.
        nodes: of each cluster.
        slices: of `SLICE` pods, on each side; at least two.

    Returns:
        The measurement.

    Raises:
        KeyError: there is no such policy.
    """
    policy = POLICIES[name]
    before = _WORKLOAD.cluster(nodes)
    pods = [_of_service(pod, number % SERVICES, policy) for number, pod in enumerate(_WORKLOAD.pods(slices * SLICE + WARM_UP))]
    sides = [Side(before, pods, _profile({})), Side(before, pods, _profile(policy.plugins))]
    plain, ruled = asyncio.run(in_turns(sides, slices))
    return PolicyCost(name, nodes, slices * SLICE, tuple(plain), tuple(ruled))


def _profile(plugins: _Arguments) -> ResolvedProfile:
    enabled = Plugins(multi_point=PluginSet(enabled=[PluginRef(name) for name in plugins]))
    config = [PluginConfig(name, dict(args)) for name, args in plugins.items()]
    return resolve(default_profile(preset=_WORKLOAD.preset, plugins=enabled, plugin_config=config), in_tree())


def _of_service(pod: Manifest, number: int, policy: Policy) -> Manifest:
    if policy.labelled:
        pod["metadata"].setdefault("labels", {})[_SERVICE] = f"service-{number:03d}"
    if policy.annotation:
        pod["metadata"].setdefault("annotations", {})[DOMAIN_LIMITS] = policy.annotation
    return pod
