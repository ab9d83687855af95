"""Was this placement right? An independent answer, from the plain meaning of a pod's constraints.

Written from the Kubernetes documentation on assigning pods to nodes, spreading, taints and volumes, one node and one pod at a time, on
objects as the API server shows them. Nothing of the scheduler's own code is used here, on purpose: neither its plugins nor its selectors.

`obstacles` says what keeps a pod off a node. A pod that was placed must meet none on its node, and one that waits must meet one on every
node, as its condition states: reason by reason, on no more nodes than it is true of.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

Object = dict[str, Any]
HOST = "kubernetes.io/hostname"


class Obstacle(StrEnum):
    """What can keep a pod off a node; the values are patterns of how schedulers say it."""

    LABELS = r"node\(s\) didn't match Pod's node affinity/selector|node\(s\) didn't satisfy plugin.*NodeAffinity.*"
    TAINTS = r"node\(s\) had untolerated taint\(s\)|node\(s\) had untolerated taint .*"
    CORDONED = r"node\(s\) were unschedulable"
    RESOURCES = r"Insufficient .+|Too many pods"
    PORTS = r"node\(s\) didn't have free ports for the requested pod ports"
    ANTI_AFFINITY = r"node\(s\) didn't (match pod|satisfy existing pods) anti-affinity rules"
    AFFINITY = r"node\(s\) didn't match pod affinity rules"
    SPREAD = r"node\(s\) didn't match pod topology spread constraints( \(missing required label\))?"
    VOLUME_REACH = r"node\(s\) didn't match PersistentVolume's node affinity"
    NO_VOLUME = r"node\(s\) didn't find available persistent volumes to bind"
    VOLUME_LIMIT = r"node\(s\) exceed max volume count"
    DISK = r"node\(s\) had no available disk"
    CLAIM_TAKEN = r"node\(s\) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"


#: What is said of a pod as a whole.
UNBOUND_CLAIM = r"pod has unbound immediate PersistentVolumeClaims"
MISSING_CLAIM = r'persistentvolumeclaim "(?P<name>.+)" not found'
_MESSAGE = re.compile(r"0/(?P<nodes>\d+) nodes are available: (?P<reasons>.+?)\.(?: |$)")
_BETWEEN = re.compile(r", (?=\d+ )")
_SUFFIXES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


@cache
def amount(text: object) -> Fraction:
    """A quantity in plain units, as the documentation of quantities has it."""
    match = re.fullmatch(r"([0-9.]+)(m|[kMGT]?|[KMGT]i)", str(text))
    assert match is not None, f"{text!r} is no quantity that this checker can read"
    return Fraction(match[1]) * (Fraction(1, 1000) if match[2] == "m" else _SUFFIXES[match[2]])


@dataclass(frozen=True)
class World:
    """A cluster at rest.

    Attributes:
        bound: uids of pods in the order in which they were bound.
    """

    nodes: Mapping[str, Object]
    pods: Sequence[Object]
    claims: Mapping[tuple[str, str], Object]
    volumes: Mapping[str, Object]
    classes: Mapping[str, Object]
    namespaces: Mapping[str, Object]
    csi_nodes: Mapping[str, Object]
    bound: Sequence[str]

    @cached_property
    def _placed(self) -> list[Object]:
        return [pod for pod in self.pods if _node(pod) in self.nodes and not _ended(pod)]

    @cached_property
    def _by_node(self) -> dict[str, list[Object]]:
        return {name: [pod for pod in self._placed if _node(pod) == name] for name in self.nodes}

    @cached_property
    def _repelling(self) -> list[Object]:
        return [pod for pod in self._placed if _affinity(pod, "podAntiAffinity")]

    @cached_property
    def _asked(self) -> dict[str, dict[str, Fraction]]:
        return {_uid(pod): requests(pod) for pod in self.pods}

    @cached_property
    def _met(self) -> dict[tuple[str, str], list[Obstacle]]:
        """What was found already: nothing changes in a cluster at rest."""
        return {}

    def on(self, node: Object, but: Object) -> list[Object]:
        """Of those that were `placed`, who is on this node."""
        return [pod for pod in self._by_node[_name(node)] if pod is not but]

    def repelling(self, but: Object) -> list[Object]:
        """Of those that were `placed`, who has anti-affinity."""
        return [pod for pod in self._repelling if pod is not but]

    def asked(self, pod: Object) -> dict[str, Fraction]:
        """What a pod asks for."""
        return self._asked[_uid(pod)]

    def met(self, pod: Object, node: Object) -> list[Obstacle]:
        """`obstacles`, looked at once."""
        known = (_uid(pod), _name(node))
        if known not in self._met:
            self._met[known] = obstacles(self, pod, node)
        return self._met[known]

    def placed(self, but: Object) -> list[Object]:
        """Pods that have a node and have not ended, without this one."""
        return [pod for pod in self._placed if pod is not but]


def wrong_placements(world: World) -> list[str]:
    """One line for every pod that is where it must not be."""
    found = []
    for pod in world.pods:
        if not _node(pod) or _ended(pod):
            continue
        node = world.nodes.get(_node(pod))
        met = ["there is no such node"] if node is None else [each.name for each in world.met(pod, node)]
        if pod["spec"].get("schedulingGates"):
            met.append("it is gated")
        met += _claims_not_bound(world, pod)
        found += [f"{_key(pod)} is on {_node(pod)}: {what}" for what in met]
    return found


def wrong_refusals(world: World) -> list[str]:
    """One line for every pod that waits although a node could take it, or whose stated reason is not true."""
    found = []
    for pod in world.pods:
        if _node(pod) or _ended(pod) or pod["spec"].get("schedulingGates"):
            continue
        message = _said(pod)
        if message is None:
            found.append(f"{_key(pod)} waits, and nobody says why")
        elif re.search(UNBOUND_CLAIM, message) or re.search(MISSING_CLAIM, message):
            found += _untrue_of_claims(world, pod, message)
        else:
            found += _untrue_of_nodes(world, pod, message)
    return found


def _untrue_of_claims(world: World, pod: Object, message: str) -> Iterator[str]:
    names = [name for name, _ in _claims_of(pod)]
    missing = re.search(MISSING_CLAIM, message)
    if missing is not None:
        if missing["name"] not in names or (_namespace(pod), missing["name"]) in world.claims:
            yield f"{_key(pod)} waits: {message}, which is not so"
    elif all((claim := world.claims.get((_namespace(pod), name))) is None or claim["spec"].get("volumeName") for name in names):
        yield f"{_key(pod)} waits: {message}, and all its claims have volumes"


def _untrue_of_nodes(world: World, pod: Object, message: str) -> Iterator[str]:
    match = _MESSAGE.match(message)
    if match is None or int(match["nodes"]) != len(world.nodes):
        yield f"{_key(pod)} waits, and does not say what keeps it off {len(world.nodes)} nodes: {message}"
        return
    met = {name: set(world.met(pod, node)) for name, node in world.nodes.items()}
    for name in sorted(name for name, here in met.items() if not here):
        yield f"{_key(pod)} waits, and {name} could take it: {message}"
    stated: Counter[Obstacle] = Counter()
    for reason in _BETWEEN.split(match["reasons"]):
        count, _, text = reason.partition(" ")
        kind = next((each for each in Obstacle if re.fullmatch(each.value, text)), None)
        if kind is None:
            yield f"{_key(pod)} waits for a reason that nobody knows: {reason}"
        else:
            stated[kind] = max(stated[kind], int(count))
    for kind, count in stated.items():
        true = sum(kind in here for here in met.values())
        if count > true:
            yield f"{_key(pod)} waits: {kind.name} is said of {count} nodes and true of {true}: {message}"


# --- what keeps a pod off a node ----------------------------------------------------------------------------------------------------


def obstacles(world: World, pod: Object, node: Object) -> list[Obstacle]:
    """Everything that keeps the pod off the node, were the pod nowhere yet."""
    here = world.on(node, pod)
    checks = {
        Obstacle.LABELS: not selects_node(pod, node),
        Obstacle.TAINTS: any(not tolerates(pod, taint) for taint in _taints(node)),
        Obstacle.CORDONED: bool(node["spec"].get("unschedulable"))
        and not tolerates(pod, {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}),
        Obstacle.RESOURCES: _overfull(world, pod, node, here),
        Obstacle.PORTS: any(_collide(mine, theirs) for mine in _ports(pod) for other in here for theirs in _ports(other)),
        Obstacle.ANTI_AFFINITY: _kept_apart(world, pod, node),
        Obstacle.AFFINITY: not _together(world, pod, node),
        Obstacle.SPREAD: _too_skewed(world, pod, node),
        Obstacle.VOLUME_REACH: any(not _reaches(node, volume) for volume in _volumes_of(world, pod)),
        Obstacle.NO_VOLUME: any(not _can_get_volume(world, claim, node) for claim in _waiting_claims(world, pod)),
        Obstacle.VOLUME_LIMIT: _too_many_volumes(world, pod, node, here),
        Obstacle.DISK: bool(_exclusive_disks(pod) & {disk for other in here for disk in _exclusive_disks(other)}),
        Obstacle.CLAIM_TAKEN: _claim_taken(world, pod),
    }
    return [obstacle for obstacle, met in checks.items() if met]


def selects_node(pod: Object, node: Object) -> bool:
    """`nodeSelector` names labels that the node must have; of the required affinity's terms one must hold."""
    labels = _labels(node)
    if any(labels.get(key) != value for key, value in (pod["spec"].get("nodeSelector") or {}).items()):
        return False
    required = _affinity(pod, "nodeAffinity")
    return required is None or _any_term(required["nodeSelectorTerms"], node)


def tolerates(pod: Object, taint: Object) -> bool:
    """A toleration matches a taint of its key, value and effect; without an effect any, without a key (and Exists) every taint."""
    for each in pod["spec"].get("tolerations") or ():
        if each.get("effect") not in (None, "", taint["effect"]) or (each.get("key") and each["key"] != taint["key"]):
            continue
        if each.get("operator") == "Exists" or (each.get("key") and (each.get("value") or "") == (taint.get("value") or "")):
            return True
    return False


def _any_term(terms: Sequence[Object], node: Object) -> bool:
    def holds(term: Object) -> bool:
        fields, expressions = term.get("matchFields") or (), term.get("matchExpressions") or ()
        if not fields and not expressions:
            return False
        name = {"metadata.name": _name(node)}
        return all(_holds(each, name) for each in fields) and all(_holds(each, _labels(node)) for each in expressions)

    return any(holds(term) for term in terms)


def _holds(requirement: Object, labels: Mapping[str, str]) -> bool:
    value, values = labels.get(requirement["key"]), requirement.get("values") or []
    match requirement["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return value is not None and int(value) > int(values[0])
        case "Lt":
            return value is not None and int(value) < int(values[0])
    raise AssertionError(f"an operator that the documentation does not have: {requirement}")


def selects(selector: Object | None, labels: Mapping[str, str]) -> bool:
    """A label selector: no selector selects nothing, an empty one everything."""
    if selector is None:
        return False
    pairs, expressions = (selector.get("matchLabels") or {}).items(), selector.get("matchExpressions") or ()
    return all(labels.get(key) == value for key, value in pairs) and all(_holds(each, labels) for each in expressions)


def requests(pod: Object) -> dict[str, Fraction]:
    """What a pod asks for: its containers together, or the largest of its init containers where that is more; and one place."""
    spec = pod["spec"]
    total = _sum([_asked(container) for container in spec["containers"]])
    for container in spec.get("initContainers") or ():
        assert container.get("restartPolicy") != "Always", "side-cars are beyond this checker"
        total |= {name: max(need, total.get(name, Fraction(0))) for name, need in _asked(container).items()}
    overhead = {name: amount(text) for name, text in (spec.get("overhead") or {}).items()}
    return _sum([total, overhead, {"pods": Fraction(1)}])


def _asked(container: Object) -> dict[str, Fraction]:
    resources = container.get("resources") or {}
    asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: amount(text) for name, text in asked.items()}


def _sum(needs: Sequence[Mapping[str, Fraction]]) -> dict[str, Fraction]:
    return {name: sum((need.get(name, Fraction(0)) for need in needs), Fraction(0)) for name in {name for need in needs for name in need}}


def _overfull(world: World, pod: Object, node: Object, here: Sequence[Object]) -> bool:
    has, nothing = node["status"]["allocatable"], Fraction(0)

    def taken(name: str) -> Fraction:
        return sum((world.asked(other).get(name, nothing) for other in here), nothing)

    return any(need + taken(name) > amount(has.get(name, "0")) for name, need in world.asked(pod).items() if need)


def _ports(pod: Object) -> Iterator[tuple[str, str, int]]:
    for container in pod["spec"]["containers"]:
        for port in container.get("ports") or ():
            number = port.get("hostPort") or (port["containerPort"] if pod["spec"].get("hostNetwork") else 0)
            if number:
                yield port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", number


def _collide(one: tuple[str, str, int], other: tuple[str, str, int]) -> bool:
    return one[1:] == other[1:] and (one[0] == other[0] or "0.0.0.0" in (one[0], other[0]))


# --- other pods ---------------------------------------------------------------------------------------------------------------------


def _kept_apart(world: World, pod: Object, node: Object) -> bool:
    """Required anti-affinity: mine against those in the node's domain, and theirs against me."""
    mine = _affinity(pod, "podAntiAffinity") or ()
    for other in world.placed(pod) if mine else world.repelling(pod):
        their_node = world.nodes[_node(other)]
        for owner, terms, against in ((pod, mine, other), (other, _affinity(other, "podAntiAffinity") or (), pod)):
            for term in terms:
                if _same_domain(term["topologyKey"], node, their_node) and _term_selects(world, owner, term, against):
                    return True
    return False


def _together(world: World, pod: Object, node: Object) -> bool:
    """Required affinity: one that all terms select, in the node's domain by every term; or nobody anywhere, and it would select itself."""
    terms = _affinity(pod, "podAffinity") or []
    if any(term["topologyKey"] not in _labels(node) for term in terms):
        return False
    chosen = [other for other in world.placed(pod) if all(_term_selects(world, pod, term, other) for term in terms)]
    domains = [any(_same_domain(term["topologyKey"], node, world.nodes[_node(other)]) for other in chosen) for term in terms]
    if all(domains):
        return True
    earlier = [other for other in chosen if _was_before(world, other, pod)]
    return not earlier and all(_term_selects(world, pod, term, pod) for term in terms)


def _was_before(world: World, other: Object, pod: Object) -> bool:
    """Whether the other was there when the pod got its place, or is there now that the pod still waits."""
    if _uid(pod) not in world.bound:
        return True
    return _uid(other) in world.bound and world.bound.index(_uid(other)) < world.bound.index(_uid(pod))


def _term_selects(world: World, owner: Object, term: Object, other: Object) -> bool:
    names, selector = term.get("namespaces") or [], term.get("namespaceSelector")
    if not names and selector is None:
        names = [_namespace(owner)]
    labels = _labels(world.namespaces[_namespace(other)])
    return (_namespace(other) in names or selects(selector, labels)) and selects(term.get("labelSelector"), _labels(other))


def _same_domain(key: str, one: Object, other: Object) -> bool:
    return key in _labels(one) and _labels(one)[key] == _labels(other).get(key)


def _too_skewed(world: World, pod: Object, node: Object) -> bool:
    """`DoNotSchedule`: with the pod here, its domain may be ahead of the emptiest eligible one by `maxSkew` at the most."""
    constraints = [each for each in pod["spec"].get("topologySpreadConstraints") or () if each["whenUnsatisfiable"] == "DoNotSchedule"]
    keys = [each["topologyKey"] for each in constraints]
    if any(key not in _labels(node) for key in keys):
        return True
    return any(_skew(world, pod, node, each, keys) > each["maxSkew"] for each in constraints)


def _skew(world: World, pod: Object, node: Object, constraint: Object, keys: Sequence[str]) -> int:
    key, selector = constraint["topologyKey"], constraint.get("labelSelector")
    eligible = [each for each in world.nodes.values() if all(k in _labels(each) for k in keys) and _counts(pod, each, constraint)]
    counts = {_labels(each)[key]: 0 for each in eligible}
    names = {_name(each) for each in eligible}
    for other in world.placed(pod):
        if _node(other) in names and _namespace(other) == _namespace(pod) and selects(selector, _labels(other)):
            counts[_labels(world.nodes[_node(other)])[key]] += 1
    least = 0 if len(counts) < (constraint.get("minDomains") or 1) else min(counts.values(), default=0)
    return counts.get(_labels(node)[key], 0) + selects(selector, _labels(pod)) - least


def _counts(pod: Object, node: Object, constraint: Object) -> bool:
    """Which nodes make up the domains: those the pod selects, and where asked those whose taints it tolerates."""
    if constraint.get("nodeAffinityPolicy", "Honor") == "Honor" and not selects_node(pod, node):
        return False
    return constraint.get("nodeTaintsPolicy", "Ignore") == "Ignore" or all(tolerates(pod, taint) for taint in _taints(node))


# --- volumes ------------------------------------------------------------------------------------------------------------------------


def _claims_of(pod: Object) -> Iterator[tuple[str, Object]]:
    for volume in pod["spec"].get("volumes") or ():
        if volume.get("persistentVolumeClaim"):
            yield volume["persistentVolumeClaim"]["claimName"], volume
        elif volume.get("ephemeral"):
            yield f"{_name(pod)}-{volume['name']}", volume


def _existing_claims(world: World, pod: Object) -> list[Object]:
    return [world.claims[_namespace(pod), name] for name, _ in _claims_of(pod) if (_namespace(pod), name) in world.claims]


def _claims_not_bound(world: World, pod: Object) -> Iterator[str]:
    for name, _ in _claims_of(pod):
        claim = world.claims.get((_namespace(pod), name))
        volume = world.volumes.get((claim or {"spec": {}})["spec"].get("volumeName", ""))
        if claim is None or volume is None or claim["status"]["phase"] != "Bound":
            yield f"its claim {name} has no volume"
        elif (volume["spec"].get("claimRef") or {}).get("uid") != _uid(claim):
            yield f"the volume of its claim {name} belongs to another"


def _volumes_of(world: World, pod: Object) -> list[Object]:
    names = [claim["spec"].get("volumeName", "") for claim in _existing_claims(world, pod)]
    return [world.volumes[name] for name in names if name in world.volumes]


def _waiting_claims(world: World, pod: Object) -> list[Object]:
    return [claim for claim in _existing_claims(world, pod) if not claim["spec"].get("volumeName")]


def _reaches(node: Object, volume: Object) -> bool:
    required = (volume["spec"].get("nodeAffinity") or {}).get("required")
    return required is None or _any_term(required["nodeSelectorTerms"], node)


def _can_get_volume(world: World, claim: Object, node: Object) -> bool:
    """A free volume that the node reaches serves the claim, or the claim's class makes one."""
    name = claim["spec"].get("storageClassName")
    storage_class = world.classes.get(name or "")
    if storage_class is not None and storage_class["provisioner"] != "kubernetes.io/no-provisioner":
        return True
    asked = amount(claim["spec"]["resources"]["requests"]["storage"])
    return any(
        volume["spec"].get("storageClassName") == name
        and not volume["spec"].get("claimRef")
        and amount(volume["spec"]["capacity"]["storage"]) >= asked
        and set(claim["spec"]["accessModes"]) <= set(volume["spec"]["accessModes"])
        and _reaches(node, volume)
        for volume in world.volumes.values()
    )


def _too_many_volumes(world: World, pod: Object, node: Object, here: Sequence[Object]) -> bool:
    """A node takes so many different volumes of a driver as its CSINode says."""
    limits = {
        each["name"]: each["allocatable"]["count"]
        for each in (world.csi_nodes.get(_name(node)) or {"spec": {"drivers": []}})["spec"]["drivers"]
        if (each.get("allocatable") or {}).get("count") is not None
    }
    mine, all_together = _csi_volumes(world, [pod]), _csi_volumes(world, [pod, *here])
    return any(driver in mine and len(all_together[driver]) > limit for driver, limit in limits.items())


def _csi_volumes(world: World, pods: Sequence[Object]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for pod in pods:
        for claim in _existing_claims(world, pod):
            volume = world.volumes.get(claim["spec"].get("volumeName", ""))
            storage_class = world.classes.get(claim["spec"].get("storageClassName") or "", {})
            csi: Object = (volume["spec"].get("csi") or {}) if volume is not None else {"driver": storage_class.get("provisioner")}
            if csi.get("driver"):
                found.setdefault(csi["driver"], set()).add(csi.get("volumeHandle") or _uid(claim))
    return found


def _claim_taken(world: World, pod: Object) -> bool:
    """`ReadWriteOncePod`: one pod in the whole cluster uses the claim."""
    mine = {_uid(claim) for claim in _existing_claims(world, pod) if "ReadWriteOncePod" in claim["spec"]["accessModes"]}
    return bool(mine) and any(_uid(claim) in mine for other in world.placed(pod) for claim in _existing_claims(world, other))


def _exclusive_disks(pod: Object) -> set[str]:
    """Disks that one pod of a node may have, by the volumes written out in the pod."""
    found = set()
    for volume in pod["spec"].get("volumes") or ():
        if volume.get("gcePersistentDisk") and not volume["gcePersistentDisk"].get("readOnly"):
            found.add(f"gce {volume['gcePersistentDisk']['pdName']}")
        elif volume.get("awsElasticBlockStore"):
            found.add(f"ebs {volume['awsElasticBlockStore']['volumeID']}")
    return found


# --- reading objects ----------------------------------------------------------------------------------------------------------------


def _affinity(pod: Object, kind: str) -> Any:
    return ((pod["spec"].get("affinity") or {}).get(kind) or {}).get("requiredDuringSchedulingIgnoredDuringExecution")


def _taints(node: Object) -> list[Object]:
    return [taint for taint in node["spec"].get("taints") or () if taint["effect"] in ("NoSchedule", "NoExecute")]


def _said(pod: Object) -> str | None:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    found = [each for each in conditions if each["type"] == "PodScheduled" and each["status"] == "False"]
    return str(found[0]["message"]) if found else None


def _labels(content: Object) -> Mapping[str, str]:
    return content["metadata"].get("labels") or {}


def _name(content: Object) -> str:
    return str(content["metadata"]["name"])


def _namespace(content: Object) -> str:
    return str(content["metadata"]["namespace"])


def _uid(content: Object) -> str:
    return str(content["metadata"]["uid"])


def _key(pod: Object) -> str:
    return f"{_namespace(pod)}/{_name(pod)}"


def _node(pod: Object) -> str:
    return str(pod["spec"].get("nodeName") or "")


def _ended(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
