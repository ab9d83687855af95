"""VolumeZone against a plain scalar reading of the rules and case by case."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pairwise_worlds import Body, World
from storage_worlds import BETA, BETA_REGION, GA, REGION, differences, said
from test_volume_restrictions import claims_of

from placewright.framework.status import Code
from placewright.plugins.volumezone import VolumeZone
from placewright.testing import PluginCase, node, persistent_volume, persistent_volume_claim, pod
from randomcases import cases

NO_ZONE = "node(s) had no available volume zone"
KEYS = (BETA, BETA_REGION, GA, REGION)
STABLE = {BETA: GA, BETA_REGION: REGION, GA: GA, REGION: REGION}


def scalar(world: World, pod: Body) -> tuple[str, dict[str, str]] | None:
    wanted: list[tuple[str, list[str]]] = []
    for namespace, name in claims_of(pod):
        found = world.find("PersistentVolumeClaim", name, namespace)
        if found is None:
            return f'persistentvolumeclaim "{name}" not found', {}
        spec = found["spec"]
        if "volumeName" not in spec:
            refusal = unbound(world, spec.get("storageClassName", ""))
            if refusal:
                return refusal, {}
            continue
        volume = world.find("PersistentVolume", spec["volumeName"])
        if volume is None:
            return f'persistentvolume "{spec["volumeName"]}" not found', {}
        labels = volume["metadata"]["labels"]
        wanted += [(key, labels[key].split("__")) for key in KEYS if key in labels and "" not in labels[key].split("__")]
    return ("", {name: NO_ZONE for name, node in world.nodes.items() if outside(wanted, node["metadata"]["labels"])}) if wanted else None


def unbound(world: World, name: str) -> str:
    if not name:
        return "PersistentVolumeClaim had no pv name and storageClass name"
    found = world.find("StorageClass", name)
    if found is None:
        return f'storageclass.storage.k8s.io "{name}" not found'
    if found["volumeBindingMode"] is None:
        return f'VolumeBindingMode not set for StorageClass "{name}"'
    return "" if found["volumeBindingMode"] == "WaitForFirstConsumer" else "PersistentVolume had no name"


def outside(wanted: list[tuple[str, list[str]]], labels: Body) -> bool:
    if not any(key in labels for key in KEYS):
        return False
    return any(labels.get(key, labels.get(STABLE[key])) not in values for key, values in wanted)


@settings(max_examples=cases(60))
@given(st.integers(0, 2**32))
def test_whatever_happens_it_says_what_the_rules_say(seed: int) -> None:
    assert differences(VolumeZone, scalar, seed) == []


@pytest.mark.parametrize(
    ("volume", "labels", "fits"),
    [
        ({GA: "z1"}, {GA: "z1"}, True),
        ({GA: "z1"}, {GA: "z2"}, False),
        ({GA: "z1__z2"}, {GA: "z2"}, True),
        ({BETA: "z1"}, {GA: "z1"}, True),
        ({BETA: "z1"}, {BETA: "z1", GA: "z2"}, True),
        ({GA: "z1"}, {BETA: "z1"}, False),
        ({GA: "z1"}, {REGION: "r1"}, False),
        ({GA: "z1"}, {}, True),
        ({GA: "z1__"}, {GA: "z2"}, True),
        ({GA: "z1", REGION: "r1"}, {GA: "z1", REGION: "r2"}, False),
    ],
)
def test_a_node_must_have_one_of_the_values_of_every_label(volume: Body, labels: Body, fits: bool) -> None:
    objects = persistent_volume("v").labels(volume), persistent_volume_claim("c").bound_to("v")
    case = PluginCase(VolumeZone, nodes=[node("n0").labels(labels)], objects=objects)
    _, by_node = said(case.plugin, case.cluster, pod("p").volume_claims("c").build())
    assert by_node.keys() == (set() if fits else {"n0"})
    assert all(verdict.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE for verdict in by_node.values())
