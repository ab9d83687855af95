"""Random makers: what they draw stays when a plugin's author goes on building, and the built objects are the same draw."""

from __future__ import annotations

import random

import pytest

from placewright.plugins.noderesources.fit import NodeResourcesFit
from placewright.testing import PluginCase, random_node, random_node_maker, random_pod, random_pod_maker


@pytest.mark.parametrize("seed", range(200))
def test_a_step_changes_what_it_says_and_nothing_else(seed: int) -> None:
    drawn = random_pod(random.Random(seed))
    made = random_pod_maker(random.Random(seed)).version("")
    assert made.build().pod == drawn.pod
    more = made.labels(rack="r1").priority(77).build().pod
    assert more.metadata.labels == {**(drawn.pod.metadata.labels or {}), "rack": "r1"}
    assert (more.spec.priority, more.spec.affinity, more.spec.tolerations) == (77, drawn.pod.spec.affinity, drawn.pod.spec.tolerations)
    assert more.spec.containers == drawn.pod.spec.containers
    node = random_node(random.Random(seed))
    tainted = random_node_maker(random.Random(seed)).taint("mine").zone("here").build()
    assert [each.key for each in tainted.spec.taints or ()] == [*(each.key for each in node.spec.taints or ()), "mine"]
    assert tainted.status.allocatable == node.status.allocatable


def test_a_case_takes_random_makers_that_were_gone_on_with() -> None:
    dice = random.Random(1)
    case = PluginCase(NodeResourcesFit, nodes=[random_node_maker(dice).offers(cpu="1", memory="64Gi", pods="9")])
    assert list(case.rejections(random_pod_maker(dice).requests(cpu="2")).values()) == ["Insufficient cpu"]
