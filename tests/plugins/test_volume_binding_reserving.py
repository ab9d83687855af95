"""What VolumeBinding assumes, writes and waits for once a node is chosen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec.structs import replace

from placewright.api.errors import VolumeError
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.api.storage import PersistentVolume, PersistentVolumeClaim
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import CycleState
from placewright.framework.runtime.handle import ProfileHandle
from placewright.framework.status import SUCCESS, Code, Status
from placewright.plugins.volumebinding.plugin import VolumeBinding, VolumeBindingArgs
from placewright.testing import PluginCase, node, persistent_volume, persistent_volume_claim, pod, storage_class
from placewright.testing.objectmaker import PlainMaker
from placewright.testing.volumes import VolumeClaimMaker, VolumeMaker
from plugins.volume_worlds import SELECTED

N1, N2 = NodeName("n1"), NodeName("n2")


@dataclass
class Writer:
    """Remembers what was written; whoever binds volumes comes in between two looks.

    Attributes:
        controller: what happens in the cluster while the pod waits, step by step; after the last the time is over.
    """

    controller: list[Callable[[], None]] = field(default_factory=list)
    bound: list[PersistentVolume] = field(default_factory=list)
    selected: list[PersistentVolumeClaim] = field(default_factory=list)
    refusal: str = ""
    seconds: float = 0

    async def bind(self, volume: PersistentVolume) -> PersistentVolume:
        if self.refusal:
            raise VolumeError(self.refusal)
        self.bound.append(volume)
        return replace(volume, metadata=replace(volume.metadata, resource_version="20"))

    async def select_node(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        self.selected.append(claim)
        return replace(claim, metadata=replace(claim.metadata, resource_version="20"))

    async def until(self, done: Callable[[], bool], seconds: float) -> bool:
        self.seconds = seconds
        for step in self.controller:
            if done():
                return True
            step()
        return done()


@dataclass
class Desk:
    """The plugin on a cluster of two nodes, with pods `web` and `other`, each with a claim of its own."""

    cluster: Cluster
    pods: dict[str, PodInfo]
    plugin: VolumeBinding
    writer: Writer

    def fits(self, name: str) -> tuple[CycleState, set[str]]:
        """A new cycle of a pod, and where it fits."""
        state, pod, rows = CycleState(), self.pods[name], self.cluster.rows()
        assert self.plugin.pre_filter(state, pod, self.cluster).status.ok
        fits = self.plugin.filter(state, pod, self.cluster, rows)
        return state, {str(self.cluster.names[row]) for row in rows[fits]}

    def reserve(self, name: str, node: NodeName) -> CycleState:
        state, nodes = self.fits(name)
        assert node in nodes
        assert self.plugin.reserve(state, self.pods[name], node) is SUCCESS
        return state

    async def pre_bind(self, state: CycleState, node: NodeName) -> Status:
        return await self.plugin.pre_bind(state, self.pods["web"], node)

    def show(self, *objects: PlainMaker[Any]) -> None:
        """The API server shows these."""
        for each in objects:
            self.cluster.objects.put(each.build())


def pvc(name: str, version: int = 10, **annotations: str) -> VolumeClaimMaker:
    return persistent_volume_claim(name).storage_class("made").annotations(annotations).version(str(version))


def volume(name: str, host: str, version: int = 10) -> VolumeMaker:
    return persistent_volume(name).storage_class("made").on(host).version(str(version))


def desk(*objects: PlainMaker[Any], static: bool = True) -> Desk:
    made = storage_class("made")
    case = PluginCase(
        VolumeBinding, nodes=[node("n1"), node("n2")],
        objects=[made if static else made.provisioner("maker"), pvc("data"), pvc("more"), *objects],
    )  # fmt: skip
    pods = {"web": pod("web").volume_claims("data").build(), "other": pod("other").volume_claims("more").build()}
    writer = Writer()
    handle = ProfileHandle(case.cluster, volumes=writer)
    return Desk(case.cluster, pods, VolumeBinding(VolumeBindingArgs(), handle), writer)


def test_the_next_pod_sees_what_is_assumed_and_sees_it_freed_when_it_is_given_back() -> None:
    it = desk(volume("a", "n1"), volume("b", "n2"))
    state = it.reserve("web", N1)
    assert it.fits("other")[1] == {"n2"}
    it.plugin.unreserve(state, it.pods["web"], N1)
    assert it.fits("other")[1] == {"n1", "n2"}
    it.plugin.unreserve(state, it.pods["web"], N1)  # a second time is no harm


def test_a_claim_whose_volume_is_to_be_made_is_bound_to_its_node_for_all_pods_that_use_it() -> None:
    it = desk(static=False)
    state = it.reserve("web", N2)
    assert it.fits("web")[1] == {"n2"}
    it.plugin.unreserve(state, it.pods["web"], N2)
    assert it.fits("web")[1] == {"n1", "n2"}


def test_of_two_pods_that_share_a_claim_the_second_gives_back_nothing_of_the_first() -> None:
    for static in (True, False):
        it = desk(volume("a", "n1"), static=static) if static else desk(static=False)
        it.reserve("web", N1)
        second = it.reserve("web", N1)
        it.plugin.unreserve(second, it.pods["web"], N1)
        assert it.fits("web")[1] == {"n1"}


def test_a_pod_that_gives_up_late_leaves_alone_what_another_pod_has_assumed_since() -> None:
    it = desk(volume("a", "n1"))
    late = it.reserve("web", N1)
    it.show(volume("a", "n1", 11))  # somebody freed it again
    it.reserve("other", N1)
    it.plugin.unreserve(late, it.pods["web"], N1)
    assert it.fits("web")[1] == set()


async def test_a_static_volume_is_told_its_claim_and_the_pod_goes_on_once_the_claim_has_it() -> None:
    it = desk(volume("a", "n1"))
    state = it.reserve("web", N1)
    it.writer.controller = [
        lambda: it.show(pvc("data", 30).bound_to("a")),  # the volume's own news are late
        lambda: it.show(volume("a", "n1", 20).bound_to("data")),
    ]
    assert (await it.pre_bind(state, N1)).ok
    (written,) = it.writer.bound
    reference = written.spec.claim_ref
    assert reference is not None
    assert (reference.kind, reference.api_version, reference.name, reference.uid) == ("PersistentVolumeClaim", "v1", "data", "uid-data")
    assert written.metadata.annotations == {"pv.kubernetes.io/bound-by-controller": "yes"}
    assert (it.writer.selected, it.writer.seconds) == ([], 600)


async def test_a_volume_that_a_person_pre_bound_is_not_said_to_be_bound_by_a_controller() -> None:
    it = desk(volume("a", "n1").spec(claimRef={"namespace": "default", "name": "data"}))
    await it.pre_bind(it.reserve("web", N1), N1)
    (written,) = it.writer.bound
    assert written.spec.claim_ref is not None and written.spec.claim_ref.uid == "uid-data"
    assert not written.metadata.annotations


async def test_a_claim_is_told_its_node_and_the_pod_goes_on_once_its_volume_is_there() -> None:
    it = desk(static=False)
    state = it.reserve("web", N2)
    it.writer.controller = [
        lambda: it.show(pvc("data", 20, **{SELECTED: "n2"})),
        lambda: it.show(pvc("data", 21, **{SELECTED: "n2"}).bound_to("fresh")),
        lambda: it.show(volume("fresh", "n2", 22)),
    ]
    assert (await it.pre_bind(state, N2)).ok
    assert [(each.metadata.name, each.metadata.annotations) for each in it.writer.selected] == [("data", {SELECTED: "n2"})]


async def test_a_claim_that_the_pod_names_twice_is_told_its_node_once() -> None:
    it = desk(static=False)
    it.pods["web"] = pod("web").volume_claims("data", "data").build()
    await it.pre_bind(it.reserve("web", N2), N2)
    assert [each.metadata.name for each in it.writer.selected] == ["data"]


@pytest.mark.parametrize(
    ("shown", "message"),
    [
        ([], "context deadline exceeded"),
        ([volume("a", "n1", 20)], 'ClaimRef got reset for pv "a"'),
        (
            [volume("a", "n2", 20).bound_to("data")],
            'pv "a" node affinity doesn\'t match node "n1": no matching NodeSelectorTerms',
        ),
    ],
)
async def test_what_goes_wrong_with_a_static_volume_is_said(shown: list[PlainMaker[Any]], message: str) -> None:
    it = desk(volume("a", "n1"))
    state = it.reserve("web", N1)
    it.writer.controller = [lambda: it.show(*shown)]
    status = await it.pre_bind(state, N1)
    assert (status.code, status.message) == (Code.ERROR, f"binding volumes: {message}")


@pytest.mark.parametrize(
    ("shown", "message"),
    [
        ([], "context deadline exceeded"),
        ([pvc("data", 20)], 'provisioning failed for PVC "data"'),
        ([pvc("data", 20, **{SELECTED: "n1"})], 'provisioning failed for PVC "data"'),
        (
            [pvc("data", 20, **{SELECTED: "n2"}).bound_to("far"), volume("far", "n1")],
            'pv "far" node affinity doesn\'t match node "n2": no matching NodeSelectorTerms',
        ),
    ],
)
async def test_what_goes_wrong_with_a_volume_to_be_made_is_said(shown: list[PlainMaker[Any]], message: str) -> None:
    it = desk(static=False)
    state = it.reserve("web", N2)
    it.writer.controller = [lambda: it.show(*shown)]
    status = await it.pre_bind(state, N2)
    assert (status.code, status.message) == (Code.ERROR, f"binding volumes: {message}")


async def test_what_vanishes_while_the_pod_waits_is_said() -> None:
    it = desk(volume("a", "n1"))
    state = it.reserve("web", N1)
    it.cluster.remove_node(N1)
    assert (await it.pre_bind(state, N1)).message == 'binding volumes: failed to get node "n1": node "n1" not found'
    it = desk(volume("a", "n1"))
    state = it.reserve("web", N1)
    for table in (it.cluster.objects.storage.claims, it.cluster.objects.storage.volumes):
        for item in list(table.values()):
            it.cluster.objects.remove(item)
        assert "binding volumes: failed to check binding: could not find v1.PersistentVolume" in (await it.pre_bind(state, N1)).message


async def test_a_pod_that_is_gone_does_not_wait_on() -> None:
    it = desk(volume("a", "n1"))
    state = it.reserve("web", N1)

    def pod_goes() -> None:
        state.abandoned = True

    it.writer.controller = [pod_goes, lambda: pytest.fail("the pod is gone, and still somebody looks")]
    assert (await it.pre_bind(state, N1)).message == "binding volumes: pod does not exist any more"


async def test_a_refused_write_rolls_back_and_frees_the_volume() -> None:
    it = desk(volume("a", "n1"))
    it.writer.refusal = "409 Conflict"
    state = it.reserve("web", N1)
    status = await it.pre_bind(state, N1)
    assert (status.code, status.message) == (Code.ERROR, "binding volumes: 409 Conflict")
    it.plugin.unreserve(state, it.pods["web"], N1)
    assert it.fits("other")[1] == {"n1"}


async def test_a_pod_whose_claims_are_bound_writes_nothing() -> None:
    it = desk(pvc("data").bound_to("a"), volume("a", "n1"))
    state = it.reserve("web", N1)
    assert (await it.pre_bind(state, N1)).ok
    assert (it.writer.bound, it.writer.selected, it.writer.seconds) == ([], [], 0)
