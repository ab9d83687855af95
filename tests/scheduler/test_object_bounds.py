"""An object with a field beyond its bound is kept without it: pods that need the object are told, and all others are placed."""

from __future__ import annotations

import re
from typing import Any

import pytest

from placewright.testing import coscheduling_group, resource_claim
from placewright.testing.objectmaker import ObjectMaker

from .makers import PodMaker, World, node, pod
from .podgroups.makers import member, tried

LARGE = {"note": "x" * 40_000}
BOUND = r"metadata\.annotations: \d+ bytes of JSON; this scheduler reads at most 32768"


def world_with(*shown: Any) -> World:
    return World().nodes(node("n0"), node("n1")).show(*shown)


@pytest.mark.parametrize(
    ("shown", "waits", "told"),
    [
        (coscheduling_group("job", 1).annotations(LARGE), member("job", 0), rf"PodGroup\.scheduling\.x-k8s\.io default/job: {BOUND}"),
        (resource_claim("gpu").request("gpu").annotations(LARGE), pod("p").resource_claims("gpu"), f'resourceclaim "gpu": {BOUND}'),
    ],
    ids=["a group", "a device claim"],
)
async def test_a_pod_that_needs_it_is_told_the_field_the_number_and_the_limit(shown: ObjectMaker[Any], waits: PodMaker, told: str) -> None:
    world = world_with(shown).pods(waits, pod("other"))
    await tried(world)
    assert re.search(told, world.gated_by(waits.build().name)), world.gated_by(waits.build().name)
    assert world.cluster.placement(waits.build().uid) is None
    assert world.cluster.placement("uid-other") is not None


async def test_it_is_used_once_its_field_is_within_the_bound() -> None:
    world = world_with(coscheduling_group("job", 1).annotations(LARGE)).pods(member("job", 0))
    await tried(world)
    world.show(coscheduling_group("job", 1))
    world.pods(member("job", 0))
    await tried(world)
    assert world.cluster.placement("uid-job-0") is not None
