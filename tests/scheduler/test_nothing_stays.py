"""Two beats after a tenant's last object is gone, no cache of the scheduler holds a text that the tenant wrote."""

from __future__ import annotations

from collections import Counter

from holders import Reached
from placewright.api import boundedcache
from placewright.api.boundedcache import forget_unasked, kept_bytes
from placewright.offline.world import read_object
from placewright.testing import World, node

from .tenantobjects import tenant_objects, tenant_pods

NODES = 4
#: Pods of a tenant that get a node, or have one.
PLACED = 17
#: Ways to the names of the objects that changed last. An entry is a name and no more, and the journals have so many entries at most.
JOURNALS = (
    " < ObjectChange < list < Log < ",
    "' < list < Log < Table < ",
    "' < list < Log < ClaimTable < ",
    "' < RecentEvent < deque < RecentEvents < ",
)


def furnished() -> World:
    """What the cluster's owner has."""
    nodes = [node(f"n{number}").offers(cpu="16", memory="64Gi", pods="110").zone(f"z{number % 2}") for number in range(NODES)]
    world = World(nodes=nodes)
    storage = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "delayed"},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pv"},
        "spec": {"storageClassName": "delayed", "capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOnce"]},
        "status": {"phase": "Available"},
    }
    devices = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}
    pool = {"name": "pool", "generation": 1, "resourceSliceCount": 1}
    slices = [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": f"slice{number}"},
            "spec": {
                "driver": "d",
                "nodeName": f"n{number}",
                "pool": pool | {"name": f"p{number}"},
                "devices": [{"name": "g0"}, {"name": "g1"}],
            },
        }
        for number in range(NODES)
    ]
    for each in (storage, volume, devices, *slices):
        found = read_object(each, "")
        assert found is not None
        world.show(found)
    return world


def come_and_go(world: World, mark: str) -> int:
    """Show the objects of a tenant, decide the pods, and delete all; the number of pods that got a node."""
    objects, pods = list(tenant_objects(mark)), list(tenant_pods(mark))
    world.show(*objects)
    world.add(*pods)
    world.advance(90)
    placed = world.cluster.pod_count_total
    for each in pods:
        world.event_handlers.assigned_pod_gone(each.uid)
        world.event_handlers.pod_gone(each.uid)
    world.settle()
    for each in objects:
        world.event_handlers.cluster_object_gone(each)
    world.settle()
    # The kit's own notes.
    ports = (world.binder.bound, world.events.recorded, world.groups.waits, world.groups.placed, world.claims.writes)
    for notes in (*ports, world.status.written, world.status.nominated, world.log.attempts, world.log.entered):
        notes.clear()
    return placed


def test_nothing_of_a_tenant_is_held_two_beats_after_its_last_object() -> None:
    world, counts, sizes = furnished(), list[Counter[str]](), list[int]()
    for mark in ("gone7", "gone8", "gone9"):
        assert come_and_go(world, mark) == PLACED
        held = kept_bytes()
        for _ in range(2):
            forget_unasked()
        sizes.append(kept_bytes())
        assert sizes[-1] < held
        reached = Reached([world])
        assert [way for way in reached.ways_to(mark) if not any(journal in way for journal in JOURNALS)] == []
        counts.append(reached.kinds)
    assert sizes[2] <= sizes[1]
    grown = {kind for kind, number in counts[2].items() if number > counts[1][kind]}
    assert grown <= {"str", "int", "ObjectChange", "RecentEvent", "ClusterEvent"}, "journals, whose number of entries is bounded"


def test_what_is_there_is_found() -> None:
    world = furnished()
    world.show(*tenant_objects("here7")).add(*tenant_pods("here7"))
    assert len(Reached([world]).ways_to("here7")) > 150


def test_each_kind_that_forgets_tells_the_bytes_of_what_it_holds() -> None:
    world = furnished()
    world.show(*tenant_objects("here7")).add(*tenant_pods("here7"))
    world.advance(90)
    told = {kept: kept.nbytes for kept in boundedcache._FORGETTING}
    assert {type(kept).__name__ for kept in told} == {type(kept).__name__ for kept, nbytes in told.items() if nbytes}
