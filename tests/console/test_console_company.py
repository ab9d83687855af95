"""The pages of a group and of a claim say what `explain` says, and name nothing of namespaces that the reader may not see."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from placewright.api.podgroups import Form, GroupRef
from placewright.explain.explanation import Explanation
from placewright.explain.observed import with_company, with_verdicts
from placewright.explain.words import standing, verdict
from placewright.serving.rights import ALL_NAMESPACES, Rights
from placewright_console.pages.grouppage import MOST_MEMBERS
from placewright_lab.consolefiles.additions import open_file
from placewright_lab.consolefiles.openedfile import FileSource
from randomcases import cases

from .companymakers import RACK, claiming, device_claim, devices, given, gpu_class, group, laboratory, member
from .makers import HOSTILE, Object, a_node, a_pod, claim_profile, file_of


def opened(path: Path, objects: list[Object]) -> FileSource:
    source = open_file(file_of(path, [*objects, claim_profile()]), 2**24)
    while source.advance():
        pass
    return source


@pytest.fixture
def source(tmp_path: Path) -> FileSource:
    return open_file(laboratory(tmp_path / "laboratory"), 2**24)


def explained(source: FileSource, namespace: str, name: str) -> Explanation:
    """As `placewright explain` would, with the objects at hand."""
    found = source.world.pod(namespace, name)
    assert found is not None
    about = with_company(Explanation(namespace, name), found, source.world.observed())
    return with_verdicts(about, found, source.world.evaluators[found.scheduler_name], source.world.observed())


# --- groups -------------------------------------------------------------------------------------------------------------------------


def test_a_group_is_told_in_the_words_of_explain_with_its_members_by_state(source: FileSource) -> None:
    for name, of in (("train", "train-1"), ("old", "old-1")):
        page = source.company.group("ml", name, ALL_NAMESPACES)
        assert page is not None
        assert page["lines"] == [line for line in standing(explained(source, "ml", of)) if line.startswith(("group ", "  "))]
        assert page["kind"] == "PodGroup.scheduling.x-k8s.io"
    assert page["states"] == [("bound", 1), ("not evaluated yet", 1)]
    assert [(name, state, on) for name, state, on, _ in page["members"]] == [("old-1", "not evaluated yet", ""), ("old-0", "bound", "n0")]


def test_the_domains_of_a_topology_are_told_in_the_order_of_trial_with_what_each_has_free(source: FileSource) -> None:
    page = source.company.group("ml", "train", ALL_NAMESPACES)
    assert page is not None
    assert (page["domains"]["key"], page["domains"]["members"]) == (RACK, 3)
    first, second = page["domains"]["found"]
    # Three members of 5 CPUs. Rack r1 is empty: 16 CPUs, in pieces of 8. Rack r0 has 8 - 6.1 and 8.
    assert first == {"value": "r1", "nodes": 2, "usable": 2, "room": 1.07, "tried": True, "fit": 2,
                     "scarce": {"resource": "cpu", "wanted": 15000, "free": 16000, "fit": 2}}  # fmt: skip
    assert second == {"value": "r0", "nodes": 2, "usable": 2, "room": 0.66, "fit": 1,
                      "scarce": {"resource": "cpu", "wanted": 15000, "free": 9900, "fit": 1}}  # fmt: skip


def crowded(draw: random.Random, path: Path) -> tuple[FileSource, list[Object]]:
    """Nodes in racks, some of them closed, with pods of two namespaces; a group of four may fit or not."""
    nodes = [a_node(f"n{i}", cpu=draw.randint(2, 6), cordoned=draw.random() < 0.2, **{RACK: f"r{draw.randrange(3)}"}) for i in range(6)]
    placed = [
        a_pod(f"{'secret' if space == 'bank' else 'open'}-{i}", f"n{draw.randrange(6)}", namespace=space, cpu=draw.randint(1, 2000))
        for i in range(8)
        for space in (draw.choice(["bank", "ml"]),)
    ]
    held = [member("secret-gang", f"secret-member-{i}", f"n{i}", namespace="bank", cpu=500) for i in range(2)]
    waits = [member("train", f"train-{i}", cpu=draw.randint(1000, 3000)) for i in range(4)]
    stands = [member("train", f"stands-{i}", f"n{draw.randrange(6)}", cpu=100) for i in range(draw.randint(0, 1))]
    objects = [*nodes, *placed, *held, *waits, *stands, group("train", 4, topology=RACK), group("secret-gang", 2, namespace="bank")]
    return opened(path, objects), objects


@pytest.mark.parametrize("seed", range(cases(20)))
def test_of_random_clusters_the_numbers_of_domains_are_those_of_a_naive_count(seed: int, tmp_path: Path) -> None:
    source, objects = crowded(random.Random(seed), tmp_path / "s")
    page = source.company.group("ml", "train", ALL_NAMESPACES)
    assert page is not None
    nodes = {each["metadata"]["name"]: each for each in objects if each["kind"] == "Node"}
    pods = [each for each in objects if each["kind"] == "Pod"]
    free = {name: cpu_of(each["status"]["allocatable"]) for name, each in nodes.items()}
    for each in pods:
        if "nodeName" in each["spec"]:
            free[each["spec"]["nodeName"]] -= asked(each)
    free = {name: max(left, 0) for name, left in free.items()}
    members = [each for each in pods if each["metadata"]["name"].startswith("train")]
    stand = Counter(nodes[each["spec"]["nodeName"]]["metadata"]["labels"][RACK] for each in pods if "stands" in each["metadata"]["name"])
    wanted = sum(asked(each) for each in members)
    for told in page["domains"]["found"]:
        mine = [name for name, each in nodes.items() if each["metadata"]["labels"][RACK] == told["value"]]
        open_ = [name for name in mine if not nodes[name]["spec"].get("unschedulable")]
        usable = [name for name in open_ if cpu_of(nodes[name]["status"]["allocatable"]) >= asked(members[0])]
        assert (told["nodes"], told["usable"], told.get("placed", 0)) == (len(mine), len(usable), stand[told["value"]])
        assert told["scarce"]["free"] == sum(free[name] for name in mine)
        assert told["scarce"]["wanted"] == wanted
        assert told.get("fit", 0) == sum(free[name] // min(asked(each) for each in members) for name in usable)
        if stand:
            assert told.get("tried", False) == (stand[told["value"]] > 0), "the others join the one that stands"
        else:
            assert told.get("tried", False) == (sum(free[name] for name in mine) >= wanted)
    assert sum(each["nodes"] for each in page["domains"]["found"]) == 6


def cpu_of(amounts: dict[str, str]) -> int:
    return int(amounts["cpu"]) * 1000


def asked(body: Object) -> int:
    return int(body["spec"]["containers"][0]["resources"]["requests"]["cpu"].removesuffix("m"))


@pytest.mark.parametrize("seed", range(cases(20)))
def test_of_random_clusters_a_group_is_told_in_the_words_of_explain_and_hides_other_namespaces(seed: int, tmp_path: Path) -> None:
    source, _ = crowded(random.Random(seed), tmp_path / "s")
    page = source.company.group("ml", "train", ALL_NAMESPACES)
    assert page is not None
    assert page["lines"] == [line for line in standing(explained(source, "ml", "train-2")) if line.startswith(("group ", "  "))]
    hidden = source.company.group("ml", "train", Rights.of(["ml"]))
    bare = msgspec.json.encode(hidden)
    assert b"secret" not in bare and b"bank" not in bare
    assert b"train-2" in bare
    counts = [[len(short["holders"]) + short["others"] for short in each["facts"]["shortages"]] for each in (page, hidden or page)]
    assert counts[0] == counts[1], "holders that may not be seen are counted"
    assert source.company.group("ml", "train", Rights.of(["bank"])) is None
    assert source.company.group("bank", "secret-gang", Rights.of(["ml"])) is None


def test_among_the_random_clusters_some_have_a_shortage_with_holders_of_the_other_namespace(tmp_path: Path) -> None:
    worlds = (crowded(random.Random(seed), tmp_path / str(seed))[0] for seed in range(20))
    found = (world.company.group("ml", "train", ALL_NAMESPACES) for world in worlds)
    assert any(b"secret" in msgspec.json.encode(page) for page in found), "or the search for hidden names would find none ever"


def test_a_name_that_several_kinds_of_group_have_is_the_one_with_members_and_the_others_are_noted(tmp_path: Path) -> None:
    native: dict[str, Any] = {"apiVersion": "scheduling.k8s.io/v1alpha3", "kind": "PodGroup"}
    native |= {"metadata": {"name": "train", "namespace": "ml"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}
    source = opened(tmp_path / "s", [a_node("a"), native, group("train", 1), member("train", "t-0")])
    page = source.company.group("ml", "train", ALL_NAMESPACES)
    assert page is not None
    assert (page["kind"], page["notes"]) == (Form.COSCHEDULING.value, [f"there is a {Form.NATIVE} of this name, too"])


def test_a_group_that_no_object_declares_and_one_without_members_and_an_unknown_one(tmp_path: Path) -> None:
    lost = member("lost", "l-0", schedulerName="nobody")
    source = opened(tmp_path / "s", [a_node("a"), group("empty", 2), lost, member(HOSTILE, HOSTILE)])
    page, empty = source.company.group("ml", "lost", ALL_NAMESPACES), source.company.group("ml", "empty", ALL_NAMESPACES)
    assert page is not None and empty is not None
    assert page["lines"][0].startswith(f"group {GroupRef(Form.COSCHEDULING, 'ml', 'lost')}: not declared; 0 placed; 1 waits")
    assert page["notes"] == ["no SchedulingProfile has schedulerName 'nobody'"]
    assert (empty["members"], empty["domains"]) == ([], None)
    assert source.company.group("ml", HOSTILE, ALL_NAMESPACES) is not None
    assert source.company.group("ml", "gone", ALL_NAMESPACES) is None


def test_a_page_names_a_bounded_number_of_members_and_counts_all(tmp_path: Path) -> None:
    members = [member("many", f"m-{i}", cpu=1) for i in range(MOST_MEMBERS + 7)]
    page = opened(tmp_path / "s", [a_node("a"), group("many", 3), *members]).company.group("ml", "many", ALL_NAMESPACES)
    assert page is not None
    assert (len(page["members"]), page["more"], sum(count for _, count in page["states"])) == (MOST_MEMBERS, 7, MOST_MEMBERS + 7)


def test_the_rows_of_the_queue_name_the_groups_of_their_pods(source: FileSource) -> None:
    while source.advance():
        pass
    rows = source.sections(ALL_NAMESPACES)["queue"].values()
    assert [row["groups"] for row in rows if "groups" in row] == [[("train", 3), ("old", 1)], [(HOSTILE, 1)]]
    assert all("groups" not in row for row in source.sections(Rights.of(["shop"]))["queue"].values())


# --- claims -------------------------------------------------------------------------------------------------------------------------


def test_a_claim_without_devices_says_who_waits_and_why_no_device_fits(source: FileSource) -> None:
    page = source.company.claim("ml", "wish", ALL_NAMESPACES)
    told = explained(source, "ml", "wisher")
    assert page is not None and told.now is not None and told.now.devices is not None
    assert page["line"] == next(line for line in standing(told) if line.startswith("claim ")).replace(" (c0)", "")
    assert [name for name, *_ in page["waiting"]] == ["wisher"]
    assert page["why"]["verdict"] == verdict(told, told.now)
    assert page["why"]["free"] == msgspec.to_builtins(told.now.devices)
    assert [(step["plugin"], step["rejected"]) for step in page["why"]["funnel"]] == [("DynamicResources", 4)]
    assert page["requests"] == [{"name": "r", "ways": [
        {"name": "", "class": "gpu", "count": 4, "selectors": ["true"], "capacity": {}, "tolerations": 0, "admin": False},
    ]}]  # fmt: skip


def test_a_claim_with_devices_says_where_they_are_and_who_uses_them(source: FileSource) -> None:
    page = source.company.claim("ml", "mine", ALL_NAMESPACES)
    assert page is not None
    (device,) = page["devices"]
    assert (device["driver"], device["pool"], device["device"], device["node"]) == ("gpu.example.com", "n0", "g0", "n0")
    assert page["users"] == [{"name": "holder", "kind": "pod", "node": "n0"}]
    assert (page["waiting"], page["why"]) == ([], None)


def test_a_share_is_told_with_what_it_consumes_of_what_the_device_has(tmp_path: Path) -> None:
    shared = {"name": "big", "allowMultipleAllocations": True, "capacity": {"memory": {"value": "80Gi"}}}
    part = given("big", "n0", shareID="0f", consumedCapacity={"memory": "20Gi"})
    old = devices("n0", "big", generation=1)
    objects = [a_node("n0"), old, devices("n0", shared, generation=2), gpu_class(), device_claim("part", has=(part, given("gone", "n0")))]
    page = opened(tmp_path / "s", objects).company.claim("ml", "part", ALL_NAMESPACES)
    assert page is not None
    share, gone = page["devices"]
    assert (share["share"], share["consumed"], share["published"]) == ("0f", {"memory": ["20Gi", "80Gi"]}, True)
    assert (gone["published"], gone["node"]) == (False, "")


def test_a_claim_is_for_readers_of_its_namespace_and_names_no_pod_of_another(tmp_path: Path) -> None:
    objects = [
        a_node("n0"), gpu_class(), devices("n0", "g0"), device_claim("wish", count=2), claiming("open", "wish", cpu=100),
        device_claim("wish", namespace="bank"), claiming("secret-job", "wish", namespace="bank", cpu=100),
        a_pod("secret", "n0", namespace="bank"),
    ]  # fmt: skip
    source = opened(tmp_path / "s", objects)
    page = source.company.claim("ml", "wish", Rights.of(["ml"]))
    assert [name for name, *_ in (page or {})["waiting"]] == ["open"]
    bare = msgspec.json.encode(page)
    assert b"secret" not in bare and b"bank" not in bare
    assert source.company.claim("bank", "wish", Rights.of(["ml"])) is None
    assert source.company.claim("bank", "wish", ALL_NAMESPACES) is not None
    assert source.company.claim("ml", "gone", ALL_NAMESPACES) is None


def test_a_pod_links_to_its_group_and_its_claims(source: FileSource) -> None:
    page, other = source.pod("ml", "train-0"), source.pod("ml", "wisher")
    assert page is not None and other is not None
    assert (page["group"], page["claims"]) == (["ml", "train"], [])
    assert (other["group"], other["claims"]) == (None, [["ml", "wish"]])
