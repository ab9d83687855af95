"""Groups of waiting pods that are kept up to date pod by pod are the groups that all pods together give."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from placewright.api.decode import DecodeError
from placewright.serving.rights import ALL_NAMESPACES, Rights
from placewright_console.pages import waitinggroups, waitingpage, waitingrows
from placewright_console.pages.waitinggroups import WaitingGroups
from placewright_console.pages.waitingpage import PodsAsked, pods_of_rows, waiting_page
from placewright_console.pages.waitingrows import PendingPod, WaitReason, alike, row_key, waiting_rows

READERS = (ALL_NAMESPACES, Rights.of(["ml"]), Rights.of(["ml", "shop"]), Rights.of([]))


def drawn(draw: random.Random, name: str) -> PendingPod:
    plugins = draw.sample(["NodeResourcesFit", "TaintToleration", "VolumeBinding"], draw.randint(0, 3))
    reasons = tuple(WaitReason(plugin, draw.choice(["no room", "no claim"]), draw.randint(0, 3)) for plugin in plugins)
    group, facts = draw.choice(["", "", "gang", "team"]), (0, draw.randint(0, 2), 0.0)
    place = draw.choice(["active", "unschedulable"])
    return PendingPod(draw.choice(["ml", "shop", "bank"]), name, "default", place, reasons, draw.randint(0, 5), group, facts)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([3, 1000]), st.sampled_from([2, 20]))
def test_rows_kept_pod_by_pod_are_those_made_of_all_pods(seed: int, groups: int, named: int) -> None:
    draw, kept, pods = random.Random(seed), WaitingGroups(), dict[str, PendingPod]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(waitingrows, "MOST_GROUPS", groups)
        for module in (waitingrows, waitinggroups):
            patch.setattr(module, "MOST_NAMED", named)
        for _ in range(120):
            uid = f"u{draw.randrange(25)}"
            if draw.random() < 0.3:
                pods.pop(uid, None)
                kept.remove(uid)
            else:
                pods[uid] = drawn(draw, uid)
                kept.put(uid, pods[uid])
            if draw.random() < 0.2:
                while kept.settle(draw.randint(1, 4)):
                    pass
                for rights in READERS:
                    assert kept.rows(rights) == waiting_rows(pods.values(), rights)
        assert len(kept) == len(pods)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 7))
def test_page_after_page_each_pod_of_the_rows_comes_once_and_the_oldest_first(seed: int, many: int) -> None:
    draw, kept, pods = random.Random(seed), WaitingGroups(), dict[str, PendingPod]()
    for number in range(draw.randint(1, 60)):
        made = drawn(draw, f"p{draw.randrange(20)}")
        if all((each.namespace, each.name) != (made.namespace, made.name) for each in pods.values()):
            pods[f"u{number}"] = made
            kept.put(f"u{number}", made)
    kept.settle(1000)
    for rights in READERS:
        rows = draw.sample(sorted(kept.rows(rights)), draw.randint(1, min(4, len(kept.rows(rights))))) if kept.rows(rights) else ["none"]
        wanted = [each for each in pods.values() if rights.may_see(each.namespace) and row_key(alike(each)) in rows]
        order = sorted((each.since, each.name, each.namespace) for each in wanted)
        with pytest.MonkeyPatch.context() as patch:
            for module in (waitingpage, waitinggroups):
                patch.setattr(module, "MOST_PODS", many)
            found, after = list[tuple[float, str, str]](), ""
            while True:
                asked = PodsAsked.of(",".join(rows), after)
                page = kept.page(asked, rights)
                assert page == waiting_page(pods_of_rows(pods.values(), asked.rows, rights), asked.after)
                assert len(page["pods"]) <= many
                found += [(since, name, namespace) for namespace, name, since, *_ in page["pods"]]
                if not page["more"]:
                    break
                namespace, name, since, *_ = page["pods"][-1]
                after = f"{since!r}/{namespace}/{name}"
        assert found == order


@pytest.mark.parametrize(
    ("rows", "after"),
    [("", ""), (",".join(map(str, range(51))), ""), ("a", "x/ns/name"), ("a", "1.5"), ("a", "nan/ns/p"), ("a", "inf/n/p")],
)
def test_a_question_that_is_none_is_refused_in_words(rows: str, after: str) -> None:
    with pytest.raises(DecodeError, match=r"^(rows|after): found "):
        PodsAsked.of(rows, after)


def test_settling_makes_no_more_rows_than_it_is_told_to() -> None:
    kept = WaitingGroups()
    for i in range(10):
        kept.put(f"u{i}", PendingPod(f"ns-{i}", "p", "default", "active", (), 0.0))
    assert [kept.settle(4) for _ in range(4)] == [4, 4, 2, 0]
    assert len(kept.rows(ALL_NAMESPACES)) == 10


def test_a_pod_that_is_as_it_was_makes_no_row_anew() -> None:
    kept, pod = WaitingGroups(), PendingPod("ml", "p", "default", "active", (WaitReason("A", "b", 1),), 0.0)
    kept.put("u", pod)
    kept.settle(9)
    kept.put("u", replace(pod))
    assert kept.settle(9) == 0


def test_texts_that_are_kept_have_a_bound_and_numbers_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waitinggroups, "MOST_TEXT", 100)
    kept = WaitingGroups()
    for i in range(9):
        kept.put(f"u{i}", PendingPod("ml", f"p{i}", "default", "unschedulable", (WaitReason("VolumeBinding", f"{i}" * 60, 7),), float(i)))
    kept.settle(100)
    rows = kept.rows(ALL_NAMESPACES)
    assert max((row["count"], row["reasons"]) for row in rows.values()) == (7, [["VolumeBinding", "", 7, 7]])
    for i in range(9):
        kept.remove(f"u{i}")
    kept.put("u", PendingPod("ml", "p", "default", "unschedulable", (WaitReason("A", "told again", 1),), 0.0))
    kept.settle(100)
    assert [row["reasons"] for row in kept.rows(ALL_NAMESPACES).values()] == [[["A", "told again", 1, 1]]]
