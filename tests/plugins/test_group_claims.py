"""Claims of a PodGroup (KEP-5729): reserved for the group, shared by its members, and given back when none of them is left."""

from __future__ import annotations

import random
from typing import Any

import pytest

from placewright import testing as kit
from placewright.api.pods import PodInfo
from placewright.framework.runtime.evaluation import Evaluation
from placewright.plugins.dynamicresources.plugin import DEALLOCATED, STILL_NOT, UNRESERVED
from plugins.claiming import Claiming
from seeds import seeds

Body = dict[str, Any]
GROUP = {"api_group": "scheduling.k8s.io", "resource": "podgroups", "name": "train", "uid": "u-train"}
OF_GROUP = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "train", "uid": "u-train"}
NAMED = {"name": "gpu", "resourceClaimName": "shared"}
MADE = {"name": "gpu", "resourceClaimTemplateName": "one"}


class Grouped(Claiming):
    """A group of pods with a claim of its own, and the claim `shared`."""

    def __init__(self, *devices: int, claims: tuple[Body, ...] = (NAMED,), **meta: Any) -> None:
        super().__init__(*devices)
        self.cluster.objects.put(kit.pod_group("train").basic().uid("u-train").spec(resourceClaims=list(claims)).build())
        self.claim("shared", **meta)

    def member(self, name: str, *claims: Body, **spec: Any) -> PodInfo:
        return kit.pod(name, resourceClaims=list(claims) or [NAMED], **spec).uid(f"p-{name}").in_group("train").build()

    def bind(self, pod: PodInfo, node: str = "n0") -> Evaluation:
        evaluation = self.reserve(pod, node)
        assert self.pre_bind(evaluation, node).ok
        self.show("shared")
        return evaluation

    def users(self) -> list[tuple[str, str]]:
        return [(each.resource, each.uid) for each in self.server.claims["shared"].status.reserved_for or ()]

    def reserved(self, *users: Body) -> None:
        """The claim has the device of n0, and these users."""
        made = kit.resource_claim("shared").uid("u-shared").request("gpu", name="r")
        on_n0 = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n0"]}]}]}
        got = {"devices": {"results": [{"request": "r", "driver": "d", "pool": "n0", "device": "d0"}]}, "nodeSelector": on_n0}
        self.server.keep(made.status(allocation=got, reservedFor=list(users)).build())
        self.show("shared")


def test_members_share_the_claim_and_it_is_reserved_for_the_group_once() -> None:
    at = Grouped(1, 1)
    first, second = at.reserve(at.member("a"), "n0"), at.reserve(at.member("b"), "n0")
    assert at.pre_bind(first, "n0").ok
    assert at.pre_bind(second, "n0").ok
    at.show("shared")
    [user] = at.server.claims["shared"].status.reserved_for or ()
    assert {name: getattr(user, name) for name in GROUP} == GROUP
    at.bind(at.member("c"))
    assert (at.users(), at.taken()) == ([("podgroups", "u-train")], [("n0", "d0")])


@pytest.mark.parametrize(
    ("entry", "groups"),
    [
        (NAMED, True),
        ({"name": "other", "resourceClaimName": "shared"}, False),  # another name
        ({"name": "gpu", "resourceClaimName": "else"}, False),  # another claim
    ],
)
def test_a_claim_is_the_groups_if_both_name_it_in_the_same_way(entry: Body, groups: bool) -> None:
    at = Grouped(2)
    at.claim("else")
    evaluation = at.reserve(at.member("a", entry), "n0")
    assert at.pre_bind(evaluation, "n0").ok
    users = at.server.claims[entry["resourceClaimName"]].status.reserved_for or ()
    assert [each.resource for each in users] == ["podgroups" if groups else "pods"]


@pytest.mark.parametrize(
    ("owner", "uid", "problem"),
    [
        ("PodGroup", "u-train", ""),
        ("Pod", "p-a", ""),
        ("PodGroup", "", "ResourceClaim default/shared was not created for Pod default/a (Pod is not owner)"),  # of another group
        ("Pod", "p-b", "ResourceClaim default/shared was not created for Pod default/a (Pod is not owner)"),
    ],
)
def test_a_claim_from_a_template_is_the_groups_or_the_pods(owner: str, uid: str, problem: str) -> None:
    api = "scheduling.k8s.io/v1alpha2" if owner == "PodGroup" else "v1"
    name = "train" if uid else "else"
    references = [{"kind": owner, "name": name, "uid": uid or "u-else", "apiVersion": api, "controller": True}]
    at = Grouped(1, claims=(MADE,), ownerReferences=references)
    made = kit.pod("a", resourceClaims=[MADE]).uid("p-a").in_group("train")
    pod = made.status(resourceClaimStatuses=[{"name": "gpu", "resourceClaimName": "shared"}]).build()
    assert at.pre_enqueue(pod) == problem
    if not problem:
        at.bind(pod)
        assert at.users() == [("podgroups", "u-train")]


@pytest.mark.parametrize("group", ["none", "without claims", "not of Kubernetes"])
def test_without_a_claim_of_the_group_the_pod_is_the_user(group: str) -> None:
    at = Grouped(1, claims=())
    pod = at.member("a") if group == "without claims" else at.pod("a", "shared", labels={})
    if group == "not of Kubernetes":
        pod = at.pod("a", "shared", labels={"scheduling.x-k8s.io/pod-group": "train"})
    at.bind(pod)
    assert at.users() == [("pods", "p-a")]


def test_a_member_goes_to_the_nodes_of_a_claim_that_is_reserved_and_nothing_is_written() -> None:
    at = Grouped(1, 1)
    at.reserved(OF_GROUP)
    pod = at.member("a")
    assert at.fits(pod) == ["n0"]
    writes = len(at.server.writes)
    at.bind(pod)
    assert (len(at.server.writes), at.users()) == (writes, [("podgroups", "u-train")])


# --- claims that keep a group away -----------------------------------------------------------------------------------------------


def waits(at: Grouped) -> PodInfo:
    """A member that fits no node: the claim ties it to n0, and it is too large for that."""
    return at.member("a", containers=[{"name": "main", "resources": {"requests": {"cpu": "65"}}}])


def test_a_group_without_members_on_nodes_first_leaves_the_claim_and_then_the_devices_are_freed() -> None:
    at = Grouped(1, 1)
    at.reserved(OF_GROUP)
    pod = waits(at)
    for answer, users, devices in ((UNRESERVED, [], [("n0", "d0")]), (DEALLOCATED, [], []), (STILL_NOT, [], [])):
        assert at.post_filter(pod) == answer
        at.server.catch_up()
        at.show("shared")
        assert (at.users(), at.taken()) == (users, devices)


def test_a_group_with_a_member_on_a_node_keeps_its_claim() -> None:
    at = Grouped(1, 1)
    at.reserved(OF_GROUP)
    at.cluster.set_pod(kit.pod("b", on="n0").in_group("train").build())
    assert at.post_filter(waits(at)) == STILL_NOT
    at.server.catch_up()
    assert at.users() == [("podgroups", "u-train")]


def test_a_claim_of_another_group_or_a_pod_is_left_to_them() -> None:
    for user in ({**OF_GROUP, "name": "else", "uid": "u-else"}, {"resource": "pods", "name": "b", "uid": "p-b"}):
        at = Grouped(1, 1)
        at.reserved(user)
        assert at.post_filter(waits(at)) == STILL_NOT


# --- taking back -----------------------------------------------------------------------------------------------------------------


def test_a_member_that_is_taken_back_leaves_the_claim_to_the_others_and_the_last_one_frees_it() -> None:
    at = Grouped(1)
    first, second = at.bind(at.member("a")), at.bind(at.member("b"))
    at.unreserve(first, "n0")
    at.server.catch_up()
    assert (at.users(), at.taken()) == ([("podgroups", "u-train")], [("n0", "d0")])
    at.unreserve(second, "n0")
    at.server.catch_up()
    at.show("shared")
    # The second member found the claim with its devices, and does not take them away; the controller frees a claim without users.
    assert at.users() == []


@seeds(range(200))
def test_random_members_that_come_and_go_never_lose_or_leak_the_claim(seed: int) -> None:
    dice = random.Random(seed)
    at = Grouped(2)
    at.claim("stranger")
    ready: dict[str, Evaluation] = {}
    bound: set[str] = set()
    for step in range(14):
        action = dice.choice(("reserve", "bind", "back"))
        if action == "reserve" and len(ready) < 4:
            pod = at.member(f"m{step}")
            if at.fits(pod):
                ready[pod.name] = at.reserve(pod, "n0")
        elif action == "bind" and (waiting := sorted(ready.keys() - bound)):
            name = dice.choice(waiting)
            assert at.pre_bind(ready[name], "n0").ok
            bound.add(name)
        elif action == "back" and ready:
            name = dice.choice(sorted(ready))
            at.unreserve(ready.pop(name), "n0")
            bound.discard(name)
            at.server.catch_up()
        at.show("shared")
        assert all(kind == "podgroups" for kind, _ in at.users())
        if ready:
            assert len(at.taken()) == 1
        if bound:
            assert at.users() == [("podgroups", "u-train")]
        if not ready:
            assert at.users() == []
    assert at.fits(at.pod("s", "stranger")) == ["n0"]
