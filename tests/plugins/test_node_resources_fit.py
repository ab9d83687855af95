"""NodeResourcesFit where a pod names many resources: every reason is told, and names that no node offers cost next to nothing."""

from __future__ import annotations

import random

import numpy as np
import pytest

from framework.makers import Scene
from placewright.api.pods import PodInfo
from placewright.cluster.resources import Resources
from placewright.framework.interface import CycleState
from placewright.framework.status import Code
from placewright.plugins.noderesources.args import NodeResourcesFitArgs
from placewright.plugins.noderesources.fit import NodeResourcesFit
from placewright.testing import node, pod
from randomcases import cases


def asking(requests: dict[str, str], uid: str = "p") -> PodInfo:
    return pod(uid, containers=[{"resources": {"requests": requests}}]).build()


def told(scene: Scene, asked: PodInfo) -> dict[str, tuple[Code, tuple[str, ...]]]:
    """By node that is rejected, why. Holds filter, explain of all rows and explain of one row together."""
    plugin = NodeResourcesFit(NodeResourcesFitArgs(), scene.handle())
    rows, state, cluster = scene.cluster.rows(), CycleState(), scene.cluster
    rejected = rows[~plugin.filter(state, asked, cluster, rows)]
    found = {}
    for rejection in plugin.explain(state, asked, cluster, rejected) if len(rejected) else ():
        for row in rejection.rows.tolist():
            [alone] = plugin.explain(state, asked, cluster, np.array([row]))
            assert alone.status == rejection.status
            assert str(cluster.names[row]) not in found
            found[str(cluster.names[row])] = (rejection.status.code, rejection.status.reasons)
    assert len(found) == len(rejected)
    return found


@pytest.mark.parametrize("seed", range(cases(10)))
@pytest.mark.parametrize("resources", [1, 31, 62, 63, 150])
def test_of_any_number_of_resources_all_that_are_short_are_told_and_whether_eviction_could_help(seed: int, resources: int) -> None:
    """Against a plain reading, node by node and resource by resource."""
    rng = random.Random(seed)
    names = [f"example.com/r{i:03}" for i in range(resources)]
    asked = {name: rng.choice("112") for name in names}
    offers = {f"n{i}": {name: rng.choice("223") for name in names} for i in range(12)}
    for offered in offers.values():
        for name in rng.sample(names, k=min(resources, rng.choice((0, 1, 2)))):
            offered[name] = rng.choice("01")
    used = {where: dict.fromkeys(rng.sample(names, k=min(resources, rng.choice((0, 3)))), 1) for where in offers}
    scene = Scene().with_nodes(*(node(where, **offered) for where, offered in offers.items()))
    for where, amounts in used.items():
        scene.place(asking({name: str(amount) for name, amount in amounts.items()}, uid=f"on-{where}"), where)

    expected = {}
    for where, offered in offers.items():
        short = [n for n in names if int(asked[n]) + used[where].get(n, 0) > int(offered[n])]
        hopeless = any(int(asked[n]) > int(offered[n]) for n in names)
        code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if hopeless else Code.UNSCHEDULABLE
        if short:
            expected[where] = (code, tuple(f"Insufficient {name}" for name in short))
    assert told(scene, asking(asked)) == expected


def test_names_that_no_node_offers_are_all_told_and_no_column_is_read_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene().with_nodes(*(node(f"n{i}", cpu=str(i)) for i in range(4)))
    unknown = {f"example.com/r{i:04}": "1" for i in range(2000)}
    reads: list[str] = []
    original = Resources.column
    monkeypatch.setattr(Resources, "column", lambda resources, name: (reads.append(name), original(resources, name))[1])
    found = told(scene, asking({"cpu": "2", **unknown}))
    missing = tuple(f"Insufficient {name}" for name in unknown)
    assert found == {
        f"n{i}": (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (*(("Insufficient cpu",) if i < 2 else ()), *missing)) for i in range(4)
    }
    assert set(reads) == {"cpu"}
