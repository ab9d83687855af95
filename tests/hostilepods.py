"""Pods that an API server takes and that nobody should be able to stop a scheduler with: large in every way in which a pod can be large.

Each kind has a maker; what it makes is drawn anew each time, in size and in text, so that no two pods are alike and nothing that is kept of
one is of use for the next.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

Object = dict[str, Any]
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz0123456789"
#: Bytes of a pod's JSON, about; an API server takes 1.5 MiB.
LARGEST: Final = 700_000


def word(dice: Random, length: int) -> str:
    return "a" + "".join(dice.choices(_LETTERS, k=max(length - 1, 1)))


class Dice(Random):
    """What is drawn, and how large a pod may be, bytes of its JSON."""

    def __init__(self, seed: int, largest: int = LARGEST) -> None:
        super().__init__(seed)
        self.largest = largest


def _some(dice: Dice, bytes_each: int) -> int:
    """How many of something: few or very many, with as many bytes each."""
    return max(1, int(dice.largest / bytes_each * dice.choice((0.01, 0.1, 0.5, 1.0))))


def _resources(dice: Dice, spec: Object, _meta: Object) -> None:
    names = {f"{word(dice, 8)}.example.com/{word(dice, 12)}": "1" for _ in range(_some(dice, 60))}
    spec["containers"][0]["resources"] = {"requests": names, "limits": names}


def _labels(dice: Dice, _spec: Object, meta: Object) -> None:
    meta["labels"] = {f"{word(dice, 20)}.example.com/{word(dice, 40)}": word(dice, 60) for _ in range(_some(dice, 140))}


def _annotations(dice: Dice, _spec: Object, meta: Object) -> None:
    meta["annotations"] = {f"example.com/{word(dice, 20)}": word(dice, dice.largest // 12) for _ in range(4)}


def _expressions(dice: Random, most: int) -> list[Object]:
    return [{"key": word(dice, 40), "operator": "In", "values": [word(dice, 20) for _ in range(most)]}]


def _node_affinity(dice: Dice, spec: Object, _meta: Object) -> None:
    values = dice.choice((1, 10, 500))
    terms = [{"matchExpressions": _expressions(dice, values)} for _ in range(_some(dice, 90 + 24 * values))]
    required = {"nodeSelectorTerms": [*terms, {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "Exists"}]}]}
    spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def _pod_affinity(dice: Dice, spec: Object, meta: Object) -> None:
    meta["labels"] = {"app": word(dice, 10)}
    values = dice.choice((1, 10, 500))
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchExpressions": _expressions(dice, values)}}
    terms = [term | {"labelSelector": {"matchExpressions": _expressions(dice, values)}} for _ in range(_some(dice, 170 + 24 * values))]
    spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def _spread(dice: Dice, spec: Object, _meta: Object) -> None:
    spec["topologySpreadConstraints"] = [
        {
            "maxSkew": 1, "topologyKey": dice.choice(("kubernetes.io/hostname", word(dice, 30))), "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchExpressions": _expressions(dice, 20)},
        }
        for _ in range(dice.choice((1, 4, 16)))
    ]  # fmt: skip


def _tolerations(dice: Dice, spec: Object, _meta: Object) -> None:
    spec["tolerations"] = [{"key": word(dice, 40), "operator": "Exists"} for _ in range(_some(dice, 80))]


def _images(dice: Dice, spec: Object, _meta: Object) -> None:
    spec["containers"] = [{"name": word(dice, 20), "image": word(dice, dice.choice((40, 4000)))} for _ in range(dice.choice((1, 20, 100)))]


def _ports(dice: Dice, spec: Object, _meta: Object) -> None:
    some = [{"containerPort": port, "hostPort": port} for port in dice.sample(range(1, 65_000), dice.choice((10, dice.largest // 140)))]
    spec["containers"][0]["ports"] = some


def _selector(dice: Dice, spec: Object, _meta: Object) -> None:
    spec["nodeSelector"] = {word(dice, 60): word(dice, 60) for _ in range(_some(dice, 130))}


def _ordinary_but_unlike(dice: Dice, spec: Object, _meta: Object) -> None:
    spec["containers"][0]["resources"] = {"requests": {"cpu": f"{dice.randrange(1, 100_000)}m", "memory": f"{dice.randrange(1, 10**9)}"}}


KINDS: Final[tuple[Callable[[Dice, Object, Object], None], ...]] = (
    _resources, _labels, _annotations, _node_affinity, _pod_affinity, _spread, _tolerations, _images, _ports, _selector,
    _ordinary_but_unlike,
)  # fmt: skip


def hostile_pod(dice: Dice, number: int, scheduler: str, node: str = "") -> Object:
    """A pod of the kind that is next, or of two kinds at once; on a node already where one is named, as anybody may write it."""
    meta: Object = {"name": f"hostile-{number}", "namespace": dice.choice(("default", f"team-{number}"))}
    spec: Object = {"schedulerName": scheduler, "containers": [{"name": "c", "image": "i"}]}
    kinds = [KINDS[number % len(KINDS)], *dice.sample(KINDS, dice.choice((0, 0, 1)))]
    for kind in kinds:
        before = spec["containers"][0]
        kind(dice, spec, meta)
        spec["containers"][0] = before | spec["containers"][0]
    if node:
        spec["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
