"""The keys of decision marks: equal for pods whose decisions are the same, and different for all others."""

from __future__ import annotations

import pytest

from placewright.api.decisionmarks import HEAVY_WORK, digest, heavy_work, keys_of, marked
from placewright.testing import pod
from placewright.testing.pods import PodMaker


def web(name: str = "web-0", *, claim: str = "data-web-0", image: str = "v1", **requests: str) -> PodMaker:
    """A member of a StatefulSet."""
    return pod(name).requests(cpu="1", **requests).image(image).volume(persistentVolumeClaim={"claimName": claim})


def test_members_of_a_stateful_set_have_one_spec() -> None:
    first, second = keys_of(web().build()), keys_of(web("web-1", claim="data-web-1").build())
    assert first == second


def test_an_image_changes_the_spec_and_not_the_shape() -> None:
    first, second = keys_of(web().build()), keys_of(web(image="v2").build())
    assert (first.shape == second.shape, first.spec == second.spec) == (True, False)


@pytest.mark.parametrize(
    "other",
    [web(memory="1Gi"), web().node_selector(zone="a"), web().spread("zone"), web().tolerates("a")],
    ids=["requests", "node selector", "spread", "toleration"],
)
def test_a_part_that_the_decision_reads_changes_the_shape(other: PodMaker) -> None:
    assert keys_of(other.build()).shape != keys_of(web().build()).shape


def test_a_mark_is_about_the_shape_of_heavy_pods_and_about_the_spec_of_others() -> None:
    info = web().build()
    assert marked(info).spec == keys_of(info).shape
    assert marked(info, heavy=False).spec == keys_of(info).spec
    assert marked(info).subject == f"pod {info.key}"


def test_the_mark_of_a_group_has_the_group_in_its_name() -> None:
    first, second = web("a").in_coscheduling_group("train").build(), web("b", memory="1Gi").in_coscheduling_group("train").build()
    assert marked(first).name == marked(second).name
    assert marked(first).name != marked(web("a").in_coscheduling_group("other").build()).name


def test_texts_that_are_divided_otherwise_have_another_digest() -> None:
    assert len({digest("ab", "c"), digest("a", "bc"), digest("abc"), digest("abc", "")}) == 4
    assert digest("ab") == digest(b"ab")
    assert digest("\ud800")  # a surrogate of a hostile name


@pytest.mark.parametrize(("number", "heavy"), [(0, False), (4, False), (60, True), (65, False)])
def test_a_decision_is_heavy_by_its_terms_unless_it_is_refused(number: int, heavy: bool) -> None:
    maker = pod("web")
    for _ in range(number):
        maker = maker.pod_affinity("zone", app="web")
    work = heavy_work(maker.build())
    assert (work >= HEAVY_WORK) == heavy
    assert heavy or work == 0
