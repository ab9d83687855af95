"""News of a claim asks the pods that name it: their keys never leave out a pod whose hint would bring it back."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from placewright.api.decode import convert
from placewright.api.devices import EXTENDED_CLAIM, ResourceClaim
from placewright.api.objects import Pod
from placewright.api.pods import PodInfo
from placewright.cluster.devices import DeviceObjects
from placewright.framework.events import QueueingHint
from placewright.plugins.dynamicresources.hints import CLAIM_KEYS, DeviceHints

NAMES = st.sampled_from(["a", "b", "c"])
SPACES = st.sampled_from(["ns", "other"])
DEVICE = {"request": "r", "driver": "d", "pool": "p"}


@st.composite
def some_claims(draw: st.DrawFn) -> ResourceClaim:
    name, space = draw(NAMES), draw(SPACES)
    meta: dict[str, Any] = {"name": name, "namespace": space, "uid": f"{space}-{name}-{draw(st.integers(0, 1))}"}
    if draw(st.booleans()):
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": draw(st.sampled_from(["p", "q"])), "controller": True}
        meta |= {"annotations": {EXTENDED_CLAIM: "true"}, "ownerReferences": [owner]}
    devices = draw(st.lists(st.sampled_from(["x", "y"]), max_size=2, unique=True))
    status: dict[str, Any] = {}
    if devices or draw(st.booleans()):
        status["allocation"] = {"devices": {"results": [DEVICE | {"device": each} for each in devices]}}
    if draw(st.booleans()):
        status["reservedFor"] = [{"resource": "pods", "name": "u", "uid": "u"}]
    return convert({"metadata": meta, "spec": {}, "status": status}, ResourceClaim)


@st.composite
def some_pods(draw: st.DrawFn) -> PodInfo:
    """A pod of one or two claims, named or made from a template; the latter perhaps not made yet."""
    entries, statuses = [], []
    for name in draw(st.lists(NAMES, min_size=1, max_size=2, unique=True)):
        made = draw(st.booleans())
        entries.append({"name": name, "resourceClaimTemplateName": "t"} if made else {"name": name, "resourceClaimName": name})
        if made and draw(st.booleans()):
            statuses.append({"name": name, "resourceClaimName": draw(NAMES)})
    meta = {"name": "p", "namespace": draw(SPACES), "uid": "p"}
    return PodInfo(convert({"metadata": meta, "spec": {"resourceClaims": entries}, "status": {"resourceClaimStatuses": statuses}}, Pod))


@given(some_pods(), st.none() | some_claims(), st.none() | some_claims(), st.lists(some_claims(), max_size=4))
def test_whomever_a_claims_news_brings_back_has_one_of_its_keys(
    waiting: PodInfo, old: ResourceClaim | None, new: ResourceClaim | None, others: list[ResourceClaim]
) -> None:
    objects = DeviceObjects()
    table = objects.claims
    for claim in (*others, *(() if new is None else (new,))):
        table.put(claim)
    if DeviceHints(objects).after_claim_change(waiting, old, new) is QueueingHint.QUEUE:
        wanted = CLAIM_KEYS.of_event(old, new)
        assert wanted is None or set(wanted) & set(CLAIM_KEYS.of_pod(waiting))


def test_news_of_a_claim_that_loses_nothing_is_for_those_that_name_it() -> None:
    made = convert({"metadata": {"name": "a", "namespace": "ns", "uid": "u"}, "spec": {}}, ResourceClaim)
    assert set(CLAIM_KEYS.of_event(None, made) or ()) == {"ns/a"}
    assert not set(CLAIM_KEYS.of_event(made, None) or ()) & {"ns/a"}, "one that is gone and had nothing helps nobody"
