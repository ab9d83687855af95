"""Claims get volumes as kube-controller-manager and external provisioners give them: rules read off the Kubernetes documentation."""

from __future__ import annotations

from typing import Any

import pytest

from kubesandbox.controllers.ephemeralclaims import EphemeralClaims
from kubesandbox.controllers.volumecontroller import VolumeController
from kubesandbox.status import ApiError
from kubesandbox.storage.writes import DeleteOptions, WriteOptions

from .claims import settled
from .makers import Core, Object, a_pod

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
SELECTED, COMPLETED = "volume.kubernetes.io/selected-node", "pv.kubernetes.io/bind-completed"


class Cluster:
    """A server core whose claims get volumes."""

    def __init__(self) -> None:
        self.core = Core()
        VolumeController(self.core.writes)
        EphemeralClaims(self.core.writes)

    def storage_class(self, name: str = "disks", provisioner: str = "example.test/maker", *, waits: bool = False, **fields: Any) -> None:
        mode = "WaitForFirstConsumer" if waits else "Immediate"
        self.core.create("storageclasses", {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode, **fields})

    def default_class(self, name: str) -> None:
        marked = {"name": name, "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
        self.core.create("storageclasses", {"metadata": marked, "provisioner": "example.test/maker"})

    def claim(self, name: str = "data", *, size: str = "1Gi", storage_class: str | None = "disks", **spec: Any) -> None:
        asked: Object = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
        named = {} if storage_class is None else {"storageClassName": storage_class}
        self.core.create("persistentvolumeclaims", {"metadata": {"name": name}, "spec": {**asked, **named}})

    def volume(self, name: str, *, size: str = "1Gi", storage_class: str = "disks", **spec: Any) -> None:
        has = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": storage_class, **spec}
        self.core.create("persistentvolumes", {"metadata": {"name": name}, "spec": has})

    def node(self, name: str, **labels: str) -> None:
        self.core.create("nodes", {"metadata": {"name": name, "labels": {HOST: name, **labels}}})

    def zoned(self, name: str, zone: str) -> None:
        self.node(name, **{ZONE: zone})

    def select(self, claim: str, node: str) -> None:
        self.edit_claim(claim, lambda body: body["metadata"].update(annotations={SELECTED: node}))

    def edit_claim(self, name: str, change: Any) -> None:
        resource = self.core.type("persistentvolumeclaims")
        self.core.writes.modify(resource, "default", name, change)

    def delete(self, plural: str, name: str) -> None:
        resource = self.core.type(plural)
        self.core.writes.delete(resource, "default" if resource.namespaced else "", name, DeleteOptions())

    def show_claim(self, name: str = "data") -> Object:
        found = self.core.get("persistentvolumeclaims", name)
        assert found is not None
        return found

    def show_volume(self, name: str) -> Object:
        found = self.core.get("persistentvolumes", name)
        assert found is not None
        return found

    def volume_of(self, claim: str = "data") -> str:
        """Return the claim's volume, empty before its binding. Check all parts of a binding."""
        shown = self.show_claim(claim)
        name = shown["spec"].get("volumeName", "")
        completed = COMPLETED in (shown["metadata"].get("annotations") or {})
        assert completed == (shown["status"]["phase"] == "Bound") == bool(name)
        if name:
            volume = self.show_volume(name)
            assert volume["status"]["phase"] == "Bound"
            assert volume["spec"]["claimRef"]["uid"] == shown["metadata"]["uid"]
        return str(name)

    def reach(self, claim: str = "data") -> dict[str, str]:
        """Return the labels of the nodes that reach the claim's volume."""
        affinity = self.show_volume(self.volume_of(claim))["spec"].get("nodeAffinity")
        if affinity is None:
            return {}
        (term,) = affinity["required"]["nodeSelectorTerms"]
        return {each["key"]: each["values"][0] for each in term["matchExpressions"]}


@pytest.fixture
async def cluster() -> Cluster:
    return Cluster()


async def test_a_claim_of_an_immediate_class_gets_a_volume_of_its_size_at_once(cluster: Cluster) -> None:
    cluster.storage_class()
    cluster.claim(size="3Gi")
    await settled()
    volume = cluster.show_volume(cluster.volume_of())
    assert volume["spec"]["capacity"] == {"storage": "3Gi"} == cluster.show_claim()["status"]["capacity"]
    assert volume["spec"]["csi"]["driver"] == "example.test/maker"


async def test_a_claim_that_waits_for_its_consumer_gets_nothing_before_a_node_is_selected(cluster: Cluster) -> None:
    cluster.storage_class(waits=True)
    cluster.volume("free")
    cluster.zoned("left", "west")
    cluster.claim()
    await settled()
    assert cluster.volume_of() == ""
    assert cluster.show_volume("free")["status"]["phase"] == "Available"
    cluster.select("data", "left")
    await settled()
    assert cluster.volume_of() not in ("", "free")
    assert cluster.reach() == {ZONE: "west"}


async def test_the_topology_is_that_which_the_driver_registered_on_the_node(cluster: Cluster) -> None:
    cluster.storage_class(waits=True)
    cluster.zoned("left", "west")
    driver = {"name": "example.test/maker", "nodeID": "left", "topologyKeys": [HOST]}
    cluster.core.create("csinodes", {"metadata": {"name": "left"}, "spec": {"drivers": [driver]}})
    cluster.claim()
    cluster.select("data", "left")
    await settled()
    assert cluster.reach() == {HOST: "left"}


async def test_a_selected_node_that_is_gone_is_taken_back(cluster: Cluster) -> None:
    cluster.storage_class(waits=True)
    cluster.claim()
    cluster.select("data", "nowhere")
    await settled()
    assert cluster.volume_of() == ""
    assert SELECTED not in cluster.show_claim()["metadata"]["annotations"]


async def test_volumes_for_nobody_in_particular_spread_over_the_zones_by_the_name_of_the_claim(cluster: Cluster) -> None:
    cluster.storage_class()
    for name, zone in (("left", "west"), ("right", "east")):
        cluster.zoned(name, zone)
    for number in range(20):
        cluster.claim(f"data-{number}")
    await settled()
    assert {cluster.reach(f"data-{number}")[ZONE] for number in range(20)} == {"west", "east"}


async def test_a_class_says_where_its_volumes_may_be(cluster: Cluster) -> None:
    cluster.zoned("left", "west")
    cluster.storage_class(allowedTopologies=[{"matchLabelExpressions": [{"key": ZONE, "values": ["south"]}]}])
    cluster.claim()
    await settled()
    assert cluster.reach() == {ZONE: "south"}


async def test_nothing_is_made_for_a_class_whose_volumes_are_made_by_hand(cluster: Cluster) -> None:
    cluster.storage_class(provisioner="kubernetes.io/no-provisioner")
    cluster.claim()
    await settled()
    assert cluster.volume_of() == ""
    cluster.volume("by-hand")
    await settled()
    assert cluster.volume_of() == "by-hand"


async def test_the_smallest_volume_that_serves_the_claim_is_taken(cluster: Cluster) -> None:
    cluster.volume("large", size="9Gi")
    cluster.volume("right", size="2Gi")
    cluster.volume("small", size="1Gi")
    cluster.volume("other-class", size="2Gi", storage_class="tapes")
    cluster.volume("other-mode", size="2Gi", accessModes=["ReadOnlyMany"])
    cluster.volume("block", size="2Gi", volumeMode="Block")
    await settled()
    cluster.claim(size="1.5Gi")
    await settled()
    assert cluster.volume_of() == "right"


async def test_a_claim_with_a_selector_takes_only_volumes_with_such_labels(cluster: Cluster) -> None:
    cluster.volume("plain")
    cluster.claim(selector={"matchLabels": {"tier": "fast"}})
    await settled()
    assert cluster.volume_of() == ""
    body = {"capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "disks"}
    cluster.core.create("persistentvolumes", {"metadata": {"name": "fast", "labels": {"tier": "fast"}}, "spec": body})
    await settled()
    assert cluster.volume_of() == "fast"


async def test_two_claims_do_not_share_a_volume(cluster: Cluster) -> None:
    cluster.volume("only")
    cluster.claim("one")
    cluster.claim("two")
    await settled()
    assert sorted([cluster.volume_of("one"), cluster.volume_of("two")]) == ["", "only"]


async def test_what_the_scheduler_binds_is_bound_to_the_end(cluster: Cluster) -> None:
    cluster.storage_class(provisioner="kubernetes.io/no-provisioner", waits=True)
    cluster.volume("disk")
    cluster.claim()
    meta = cluster.show_claim()["metadata"]
    reference = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "data", "uid": meta["uid"]}
    shown = cluster.show_volume("disk")
    changed = {**shown, "spec": {**shown["spec"], "claimRef": reference}}
    cluster.core.writes.replace(cluster.core.type("persistentvolumes"), "", "disk", changed, WriteOptions())
    await settled()
    assert cluster.volume_of() == "disk"


async def test_a_volume_kept_for_a_claim_goes_to_no_other(cluster: Cluster) -> None:
    cluster.volume("kept", claimRef={"namespace": "default", "name": "later"})
    cluster.claim("sooner")
    await settled()
    assert cluster.volume_of("sooner") == ""
    assert cluster.show_volume("kept")["status"]["phase"] == "Available"
    cluster.claim("later")
    await settled()
    assert cluster.volume_of("later") == "kept"


async def test_a_claim_that_names_a_volume_waits_for_that_one(cluster: Cluster) -> None:
    cluster.storage_class()
    cluster.volume("other")
    cluster.core.create(
        "persistentvolumeclaims",
        {"metadata": {"name": "data"}, "spec": {"volumeName": "mine", "storageClassName": "disks", "accessModes": ["ReadWriteOnce"]}},
    )
    await settled()
    assert COMPLETED not in (cluster.show_claim()["metadata"].get("annotations") or {})
    cluster.volume("mine")
    await settled()
    assert cluster.volume_of() == "mine"


@pytest.mark.parametrize(("policy", "kept"), [("Retain", True), ("Delete", False)])
async def test_a_volume_outlives_its_claim_where_it_is_to_be_kept(cluster: Cluster, policy: str, kept: bool) -> None:
    cluster.storage_class(reclaimPolicy=policy)
    cluster.claim()
    await settled()
    name = cluster.volume_of()
    cluster.delete("persistentvolumeclaims", "data")
    await settled()
    found = cluster.core.get("persistentvolumes", name)
    assert (found is not None) == kept
    if found is not None:
        assert found["status"]["phase"] == "Released"
        cluster.claim("next")
        await settled()
        assert cluster.volume_of("next") != name, "what is on a released volume belongs to the claim before"


async def test_a_claim_whose_volume_vanishes_is_lost(cluster: Cluster) -> None:
    cluster.storage_class()
    cluster.claim()
    await settled()
    cluster.delete("persistentvolumes", cluster.volume_of())
    await settled()
    assert cluster.show_claim()["status"]["phase"] == "Lost"


async def test_a_claim_without_a_class_gets_the_newest_default_one(cluster: Cluster) -> None:
    cluster.default_class("old")
    cluster.core.clock.now += 60
    cluster.default_class("new")
    cluster.claim(storage_class=None)
    cluster.claim("no-class", storage_class="")
    await settled()
    assert cluster.show_claim()["spec"]["storageClassName"] == "new"
    assert cluster.show_claim("no-class")["spec"]["storageClassName"] == ""
    assert cluster.volume_of("no-class") == ""


async def test_a_default_class_that_comes_later_helps_claims_that_wait_for_one(cluster: Cluster) -> None:
    cluster.claim(storage_class=None)
    await settled()
    assert cluster.volume_of() == ""
    cluster.default_class("late")
    await settled()
    assert cluster.volume_of() != ""


async def test_a_pod_with_an_ephemeral_volume_gets_a_claim_that_goes_with_it(cluster: Cluster) -> None:
    cluster.storage_class()
    body = a_pod("web")
    template = {"metadata": {"labels": {"tier": "scratch"}}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "disks"}}
    body["spec"]["volumes"] = [{"name": "tmp", "ephemeral": {"volumeClaimTemplate": template}}]
    uid = cluster.core.create("pods", body)["metadata"]["uid"]
    await settled()
    claim = cluster.show_claim("web-tmp")
    assert [(owner["uid"], owner["controller"]) for owner in claim["metadata"]["ownerReferences"]] == [(uid, True)]
    assert claim["metadata"]["labels"] == {"tier": "scratch"}
    assert cluster.volume_of("web-tmp")


@pytest.mark.parametrize(
    ("plural", "spec"),
    [
        ("persistentvolumeclaims", {"accessModes": 7}),
        ("persistentvolumeclaims", {"resources": []}),
        ("persistentvolumeclaims", {"resources": {"requests": 1}}),
        ("persistentvolumes", {"capacity": "full"}),
        ("persistentvolumes", {"capacity": {"storage": "full"}}),
        ("persistentvolumes", {"claimRef": "me"}),
    ],
)
async def test_a_volume_or_claim_of_another_shape_is_refused(cluster: Cluster, plural: str, spec: Object) -> None:
    with pytest.raises(ApiError) as refused:
        cluster.core.create(plural, {"metadata": {"name": "bad"}, "spec": spec})
    assert refused.value.code == 400


async def test_a_claim_that_makes_no_sense_keeps_no_other_from_its_volume(cluster: Cluster) -> None:
    cluster.storage_class()
    cluster.volume("disk", size="2Gi")
    spec = {"storageClassName": "disks", "selector": {"matchExpressions": [{"operator": "Near"}]}}
    cluster.core.create("persistentvolumeclaims", {"metadata": {"name": "bad"}, "spec": spec})
    cluster.claim()
    await settled()
    assert cluster.volume_of() != ""
