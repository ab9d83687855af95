"""ServiceAffinity with the public kit, as an author outside Placewright tests a plugin."""

from __future__ import annotations

from placewright.testing import PluginCase, World, assert_placed, assert_waiting, node, pod, profile, service
from placewright_legacy_plugins import ServiceAffinity

NORTH, NORTH_TOO, SOUTH = (
    node("n1").labels({"hall": "north"}), node("n2").labels({"hall": "north"}), node("s").labels({"hall": "south"})
)  # fmt: skip
WEB = service("web").selects({"app": "web"})
STANDING = pod("first").labels({"app": "web"}).on("n1")
NEW = pod("second").labels({"app": "web"})
REASON = "node(s) didn't match service affinity"


def case(*, together: bool = True) -> PluginCase:
    args = {"affinityLabels": ["hall"]} if together else {"antiAffinityLabelsPreference": ["hall"]}
    return PluginCase(ServiceAffinity, args=args, nodes=[NORTH, NORTH_TOO, SOUTH], pods=[STANDING], objects=[WEB])


def test_the_second_pod_of_a_service_goes_where_the_first_ones_label_is_the_same() -> None:
    assert case().rejections(NEW) == {"s": REASON}


def test_a_pod_that_no_service_selects_goes_anywhere() -> None:
    assert case().rejections(pod("other").labels({"app": "db"})) == {}


def test_what_the_pod_asks_of_the_label_goes_before_what_others_have() -> None:
    assert case().rejections(NEW.spec(nodeSelector={"hall": "south"})) == {"n1": REASON, "n2": REASON}


def test_a_hall_with_pods_of_the_service_scores_lower() -> None:
    assert case(together=False).scores(NEW) == {"n1": 0, "n2": 0, "s": 100}


def rejected() -> World:
    """Reject a pod: only the south has room, and its Service's first pod is in the north."""
    full = NORTH.offers(pods="1")
    together = profile().args(ServiceAffinity, affinityLabels=["hall"])
    world = World(ServiceAffinity, nodes=[full, SOUTH], pods=[STANDING], objects=[WEB], profile=together)
    world.add(NEW)
    assert_waiting(world, "second", plugin="ServiceAffinity")
    return world


def test_a_rejected_pod_is_tried_again_when_its_service_goes() -> None:
    world = rejected()
    world.remove(WEB)
    world.advance(60)
    assert_placed(world, "second", on="s")


def test_a_rejected_pod_is_tried_again_when_the_first_pod_leaves_the_service_by_its_labels() -> None:
    world = rejected()
    world.add(STANDING.labels({"app": "db"}))
    world.advance(60)
    assert_placed(world, "second", on="s")
