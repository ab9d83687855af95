"""Clusters with volumes, drawn at random, and what kube-scheduler's rules say of them, node by node, on the bare manifests."""

from __future__ import annotations

from collections import Counter
from math import floor
from random import Random

from framework.scalar_model import expression_holds
from plugins.pairwise_worlds import Body, matches

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
SELECTED, COMPLETED = "volume.kubernetes.io/selected-node", "pv.kubernetes.io/bind-completed"
AFFINITY = "node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"


def gibi(amount: str) -> int:
    """`5Gi` as 5."""
    return int(amount.removesuffix("Gi"))


# --- drawing -----------------------------------------------------------------------------------------------------------------


def world(dice: Random) -> list[Body]:
    """Nodes, classes, drivers, capacities, volumes, claims, and a pod `web` that uses some of the claims."""
    nodes = [_node(dice, f"n{i}") for i in range(dice.randint(1, 6))]
    volumes = [_volume(dice, f"pv{i}", len(nodes)) for i in range(dice.randint(0, 12))]
    claims = [_claim(dice, f"c{i}", len(nodes), len(volumes)) for i in range(dice.randint(1, 4))]
    uses = [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": dice.choice(claims)["metadata"]["name"]}} for i in range(3)]
    pod = {"kind": "Pod", "metadata": {"name": "web", "namespace": "default", "uid": "web"}, "spec": {"volumes": uses}}
    return [*nodes, *_classes(dice), *_capacities(dice, len(nodes)), *volumes, *claims, pod]


def _node(dice: Random, name: str) -> Body:
    labels = {HOST: name} | ({ZONE: dice.choice("ab")} if dice.random() < 0.8 else {})
    return {"kind": "Node", "metadata": {"name": name, "labels": labels}, "status": {"allocatable": {"pods": "10"}}}


def _classes(dice: Random) -> list[Body]:
    zones = [{"matchLabelExpressions": [{"key": ZONE, "values": ["a"]}]}]
    kinds = {"static": "kubernetes.io/no-provisioner", "made": "maker", "counted": "counter", "zonal": "counter"}
    found: list[Body] = [{"kind": "CSIDriver", "metadata": {"name": "counter"}, "spec": {"storageCapacity": dice.random() < 0.9}}]
    for name, provisioner in kinds.items():
        body: Body = {"kind": "StorageClass", "metadata": {"name": name}, "provisioner": provisioner}
        body["volumeBindingMode"] = "WaitForFirstConsumer" if dice.random() < 0.95 else "Immediate"
        found.append(body | ({"allowedTopologies": zones} if name == "zonal" else {}))
    return found


def _capacities(dice: Random, nodes: int) -> list[Body]:
    found = []
    for i in range(dice.randint(0, 3)):
        body: Body = {"kind": "CSIStorageCapacity", "metadata": {"name": f"cap{i}", "namespace": "kube-system"}}
        body |= {"storageClassName": dice.choice(["counted", "zonal"]), "capacity": f"{dice.randint(1, 9)}Gi"}
        if dice.random() < 0.3:
            body["maximumVolumeSize"] = f"{dice.randint(1, 9)}Gi"
        if dice.random() < 0.9:
            labels = {ZONE: dice.choice("ab")} if dice.random() < 0.5 else {HOST: f"n{dice.randrange(nodes)}"}
            body["nodeTopology"] = {"matchLabels": labels}
        found.append(body)
    return found


def _volume(dice: Random, name: str, nodes: int) -> Body:
    storage_class = dice.choice(["static", "static", "made", "counted", "zonal", ""])
    spec: Body = {"capacity": {"storage": f"{dice.randint(1, 9)}Gi"}, "storageClassName": storage_class}
    spec["accessModes"] = dice.sample(["ReadWriteOnce", "ReadOnlyMany"], dice.randint(1, 2))
    if dice.random() < 0.1:
        spec["volumeMode"] = "Block"
    if dice.random() < 0.2:
        spec["claimRef"] = {"namespace": "default", "name": dice.choice(["c0", "c1", "else"])}
        if dice.random() < 0.3:
            spec["claimRef"]["uid"] = dice.choice(["c0", "c1"])
    if dice.random() < 0.75:
        host = {"key": HOST, "operator": "In", "values": [f"n{dice.randrange(nodes)}"]}
        zone = {"key": ZONE, "operator": dice.choice(["In", "NotIn"]), "values": ["a"]}
        terms = [{"matchExpressions": [each]} for each in dice.sample([host, zone], dice.randint(1, 2))]
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    meta: Body = {"name": name, "labels": {dice.choice(["disk", "disk", "tier"]): dice.choice(["ssd", "hdd"])}}
    if dice.random() < 0.1:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {"kind": "PersistentVolume", "metadata": meta, "spec": spec, "status": {"phase": dice.choice(["Available"] * 4 + ["Released"])}}


def _claim(dice: Random, name: str, nodes: int, volumes: int) -> Body:
    spec: Body = {"resources": {"requests": {"storage": f"{dice.randint(1, 7)}Gi"}}}
    spec["accessModes"] = [dice.choice(["ReadWriteOnce"] * 3 + ["X"])]
    spec["storageClassName"] = dice.choice(["static", "static", "made", "counted", "zonal"])
    annotations = {}
    if dice.random() < 0.3:
        spec["volumeName"], annotations[COMPLETED] = f"pv{dice.randrange(volumes + 1)}", "yes"
    elif dice.random() < 0.15:
        annotations[SELECTED] = f"n{dice.randrange(nodes)}"
    if dice.random() < 0.2:
        spec["selector"] = {"matchLabels": {"disk": "ssd"}}
    elif dice.random() < 0.15:
        spec["selector"] = {"matchExpressions": [_requirement(dice) for _ in range(dice.randint(1, 2))]}
    meta = {"name": name, "namespace": "default", "uid": name, "annotations": annotations}
    return {"kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}


def _requirement(dice: Random) -> Body:
    named = dice.random() < 0.6
    operator = dice.choice(["In", "NotIn"] if named else ["Exists", "DoesNotExist"])
    values = {"values": dice.sample(["ssd", "hdd", "none"], dice.randint(1, 2))} if named else {}
    return {"key": dice.choice(["disk", "disk", "tier", "nobody-has-it"]), "operator": operator, **values}


# --- judging -----------------------------------------------------------------------------------------------------------------


class Judge:
    """The rules, one node and one volume at a time."""

    def __init__(self, objects: list[Body]) -> None:
        self.of: dict[str, dict[str, Body]] = {}
        for each in objects:
            self.of.setdefault(each["kind"], {})[each["metadata"]["name"]] = each

    def refusal(self) -> str:
        """Why the pod can go nowhere; empty when nodes must be asked."""
        unbound = [claim for claim in self._claims() if COMPLETED not in claim["metadata"]["annotations"]]
        modes = [self.of["StorageClass"][claim["spec"]["storageClassName"]]["volumeBindingMode"] for claim in unbound]
        return "pod has unbound immediate PersistentVolumeClaims" if "Immediate" in modes else ""

    def _claims(self) -> list[Body]:
        uses = self.of["Pod"]["web"]["spec"]["volumes"]
        return [self.of["PersistentVolumeClaim"][use["persistentVolumeClaim"]["claimName"]] for use in uses]

    def reasons(self, node: str) -> tuple[list[str], list[int]]:
        """What is wrong with a node, and the sizes of the volumes that the pod's claims would take there, in the order of taking."""
        labels = self.of["Node"][node]["metadata"]["labels"]
        wrong = self._bound(labels)
        taken, made = self._choices(node)
        selected = {claim["metadata"]["annotations"].get(SELECTED, node) for claim in made}
        found = NO_VOLUME if selected - {node} else next((why for why in (self._not_made(claim, labels) for claim in made) if why), "")
        wrong += [found] if found else []
        sizes = [gibi(volume["spec"]["capacity"]["storage"]) for _, volume in taken]
        return sorted(wrong, key=[AFFINITY, NO_VOLUME, NO_SPACE, GONE].index), sizes

    def _choices(self, node: str) -> tuple[list[tuple[Body, Body]], list[Body]]:
        """Claims with the volumes that they would take on a node, and claims whose volumes would be made. For another node: these alone."""
        labels = self.of["Node"][node]["metadata"]["labels"]
        waiting = [claim for claim in self._claims() if COMPLETED not in claim["metadata"]["annotations"]]
        made = [claim for claim in waiting if SELECTED in claim["metadata"]["annotations"]]
        if any(claim["metadata"]["annotations"][SELECTED] != node for claim in made):
            return [], made
        taken: list[tuple[Body, Body]] = []
        for claim in sorted((c for c in waiting if c not in made), key=size):
            volume = self._smallest(claim, labels, [each for _, each in taken])
            if volume is None:
                made = [*made, claim]
            else:
                taken.append((claim, volume))
        return taken, made

    def score(self, node: str) -> int:
        """The score of a node that fits, where the emptiest storage is the best: by volumes that exist, else by free capacity."""
        taken, made = self._choices(node)
        asked: Counter[str] = Counter()
        there: Counter[str] = Counter()
        for claim, volume in taken:
            asked[_class(claim)] += size(claim)
            there[_class(claim)] += gibi(volume["spec"]["capacity"]["storage"])
        for claim in made if not taken else ():
            room = self._room(claim, self.of["Node"][node]["metadata"]["labels"])
            if room is not None:
                asked[_class(claim)] += size(claim)
                there[_class(claim)] = room
        scores = [100 - min(100, 100 * asked[name] // there[name]) for name in asked]
        return floor(sum(scores) / len(scores) + 0.5) if scores else 0

    def _bound(self, labels: Body) -> list[str]:
        for claim in self._claims():
            if COMPLETED in claim["metadata"]["annotations"]:
                volume = self.of.get("PersistentVolume", {}).get(claim["spec"]["volumeName"])
                if volume is None:
                    return [GONE]
                if not reaches(volume, labels):
                    return [AFFINITY]
        return []

    def _smallest(self, claim: Body, labels: Body, taken: list[Body]) -> Body | None:
        best: Body | None = None
        for volume in self.of.get("PersistentVolume", {}).values():
            spec, ref = volume["spec"], volume["spec"].get("claimRef")
            if volume in taken or spec["storageClassName"] != claim["spec"]["storageClassName"]:
                continue
            name, uid = claim["metadata"]["name"], claim["metadata"]["uid"]
            mine = ref is not None and ref["name"] == name and ref.get("uid", uid) == uid
            if ref is not None and not mine:
                continue
            if gibi(spec["capacity"]["storage"]) < size(claim) or spec.get("volumeMode") or "deletionTimestamp" in volume["metadata"]:
                continue
            if mine:
                return volume if reaches(volume, labels) else None
            fits = volume["status"]["phase"] == "Available" and set(claim["spec"]["accessModes"]) <= set(spec["accessModes"])
            fits = fits and matches(claim["spec"].get("selector", {}), volume["metadata"]["labels"]) and reaches(volume, labels)
            if fits and (best is None or gibi(spec["capacity"]["storage"]) < gibi(best["spec"]["capacity"]["storage"])):
                best = volume
        return best

    def _not_made(self, claim: Body, labels: Body) -> str:
        storage_class = self.of["StorageClass"][claim["spec"]["storageClassName"]]
        if "no-provisioner" in storage_class["provisioner"] or ("allowedTopologies" in storage_class and labels.get(ZONE) != "a"):
            return NO_VOLUME
        return NO_SPACE if self._counts(claim) and self._room(claim, labels) is None else ""

    def _counts(self, claim: Body) -> bool:
        provisioner = self.of["StorageClass"][_class(claim)]["provisioner"]
        return provisioner == "counter" and bool(self.of["CSIDriver"]["counter"]["spec"]["storageCapacity"])

    def _room(self, claim: Body, labels: Body) -> int | None:
        """Free capacity where the claim's volume would be made, in Gi; None if it is unknown, or too little."""
        for each in self.of.get("CSIStorageCapacity", {}).values() if self._counts(claim) else ():
            topology = each.get("nodeTopology")
            near = topology is not None and all(labels.get(key) == value for key, value in topology["matchLabels"].items())
            counts = near and each["storageClassName"] == _class(claim)
            if counts and gibi(each.get("maximumVolumeSize", each["capacity"])) >= size(claim):
                return gibi(each["capacity"])
        return None


def size(claim: Body) -> int:
    """What a claim asks for, in Gi."""
    return gibi(claim["spec"]["resources"]["requests"]["storage"])


def _class(claim: Body) -> str:
    return str(claim["spec"]["storageClassName"])


def reaches(volume: Body, labels: Body) -> bool:
    """Whether a node with these labels satisfies one of the volume's terms."""
    affinity = volume["spec"].get("nodeAffinity")
    if affinity is None:
        return True
    terms = [term["matchExpressions"][0] for term in affinity["required"]["nodeSelectorTerms"]]
    return any(expression_holds(term, labels) for term in terms)
