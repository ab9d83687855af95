"""Claims to devices through an operator at work, on a sandbox whose claim controller and driver do their part."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

from kubesandbox.devices.layouts import ATTACH_FAILED, DRIVER, EXTENDED_RESOURCE, DeviceKind, DeviceLayout
from kubesandbox.faults import Rule

from .stage import Stage, new_stage, operator

Body = dict[str, Any]
GROUP = "resource.k8s.io"
EARLIER = "2026-01-01T00:00:00Z"
TOLD = 'device binding failed: claim=mine, reason=Broken, message="no light"'


class Devices:
    """What is claimed on a stage."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.claim_type, self._templates = (stage.sandbox.resource(GROUP, "v1", f"resourceclaim{end}") for end in ("s", "templates"))

    def request(self, count: int = 1) -> Body:
        return {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": DRIVER, "count": count}}]}}

    def template(self, name: str, count: int = 1) -> None:
        self._create(self._templates, {"metadata": {"name": name}, "spec": {"spec": self.request(count)}})

    def claim(self, name: str, spec: Body | None = None) -> None:
        self._create(self.claim_type, {"metadata": {"name": name}, "spec": spec or self.request()})

    def pod(self, name: str, *claims: Body, resources: Body | None = None) -> None:
        named = [{"name": f"c{number}", **each} for number, each in enumerate(claims)]
        container = {"name": "main", "image": "example.test/main", "resources": resources or {}}
        spec = {"schedulerName": "placewright", "resourceClaims": named, "containers": [container]}
        self._create(self.stage.sandbox.resource("", "v1", "pods"), {"metadata": {"name": name}, "spec": spec})

    def _create(self, resource: Any, content: Body) -> None:
        self.stage.sandbox.writes.create(resource, "default", content)

    def claims(self) -> Iterator[Body]:
        return (each.object for each in self.stage.sandbox.store.listed(self.claim_type.key))

    def taken(self) -> list[tuple[str, str]]:
        """Every device in some claim, as often as it is."""
        return [
            (result["pool"], result["device"])
            for claim in self.claims()
            for result in claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ())
        ]

    def users(self, name: str) -> list[str]:
        """The pods that a claim names."""
        (claim,) = (each for each in self.claims() if each["metadata"]["name"] == name)
        return sorted(user["name"] for user in claim.get("status", {}).get("reservedFor", ()))

    def message(self, pod: str) -> str:
        return str(self.stage.condition(pod).get("message", ""))


@asynccontextmanager
async def devices(nodes: int, **layout: Any) -> AsyncIterator[Devices]:
    async with new_stage(devices=DeviceLayout(**layout)) as stage:
        yield Devices(stage.profile().nodes(nodes))


ONE = {"resourceClaimTemplateName": "one"}


async def test_as_many_pods_are_placed_as_there_are_devices_and_others_as_they_leave() -> None:
    async with devices(2, count=2) as at:
        at.template("one")
        names = [f"p{number}" for number in range(6)]
        for name in names:
            at.pod(name, ONE)
        async with operator(at.stage):
            await at.stage.until(lambda: sum(map(at.stage.placed, names)) == 4, "four pods are placed")
            waiting = [name for name in names if not at.stage.placed(name)]
            await at.stage.until(lambda: all(map(at.message, waiting)), "the others are told why not")
            assert at.message(waiting[0]).startswith("0/2 nodes are available: 2 cannot allocate all claims.")
            assert sorted(Counter(at.taken()).values()) == [1, 1, 1, 1]
            for name in names:
                if name not in waiting:
                    at.stage.delete_pod(name)
            await at.stage.until(lambda: at.stage.placed(*waiting), "the others are placed")
            for name in waiting:
                at.stage.delete_pod(name)
            await at.stage.until(lambda: not list(at.claims()), "no claim is left")
        assert at.stage.bound_twice() == []


async def test_pods_that_share_a_claim_go_where_its_devices_are() -> None:
    async with devices(3, count=1) as at:
        at.claim("shared")
        names = [f"p{number}" for number in range(5)]
        for name in names:
            at.pod(name, {"resourceClaimName": "shared"})
        async with operator(at.stage):
            await at.stage.until(lambda: at.stage.placed(*names), "all are placed")
            assert at.users("shared") == names
            assert len({at.stage.node_of(name) for name in names}) == 1
            assert len(at.taken()) == 1


async def test_a_pod_whose_claim_or_class_is_missing_says_which_and_is_placed_once_it_is_there() -> None:
    async with devices(1, count=2) as at:
        at.pod("early", {"resourceClaimName": "late"})
        at.claim("odd", {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "nothing"}}]}})
        at.pod("odd", {"resourceClaimName": "odd"})
        async with operator(at.stage):
            await at.stage.until(lambda: at.message("odd"), "the odd pod is told why not")
            assert "device class nothing does not exist" in at.message("odd")
            at.claim("late")
            await at.stage.until(lambda: at.stage.placed("early"), "the claim came")


async def test_what_a_binding_that_fails_had_is_free_again() -> None:
    async with devices(1, count=1) as at:
        at.claim("mine")
        at.claim("other")
        at.stage.sandbox.faults.add(Rule(code=403, method="POST", path="/pods/first/binding"))
        at.pod("first", {"resourceClaimName": "mine"})
        async with operator(at.stage):
            await at.stage.until(lambda: "first" in at.users("mine"), "the claim is written")
            await at.stage.until(lambda: not at.taken(), "the device is free again")
            at.stage.delete_pod("first")
            at.pod("second", {"resourceClaimName": "other"})
            await at.stage.until(lambda: at.stage.placed("second"), "somebody else has it")
            assert at.users("mine") == []


async def test_a_pod_waits_for_devices_that_are_attached_first() -> None:
    async with devices(1, count=1, kind=DeviceKind.ATTACHED) as at:
        at.template("one")
        at.pod("web", ONE)
        async with operator(at.stage):
            await at.stage.until(lambda: at.stage.placed("web"), "the device is attached, the pod bound")
            await at.stage.until(lambda: len(at.stage.events("web")) > 1, "both events are written")
            reasons = [reason for reason, _ in at.stage.events("web")]
            assert sorted(reasons) == ["BindingConditionsPending", "Scheduled"]


async def test_an_extended_resource_is_served_by_devices_where_nodes_do_not_offer_it() -> None:
    async with devices(1, count=3) as at:
        at.pod("web", resources={"requests": {EXTENDED_RESOURCE: "2"}, "limits": {EXTENDED_RESOURCE: "2"}})
        at.pod("next", resources={"requests": {EXTENDED_RESOURCE: "2"}, "limits": {EXTENDED_RESOURCE: "2"}})
        async with operator(at.stage):
            await at.stage.until(lambda: at.stage.placed("web") or at.stage.placed("next"), "one is placed")
            (first, second) = ("web", "next") if at.stage.placed("web") else ("next", "web")
            await at.stage.until(lambda: at.message(second), "the other one is told why not")
            (claim,) = at.claims()
            status = at.stage.show(first)["status"]["extendedResourceClaimStatus"]
            assert status["resourceClaimName"] == claim["metadata"]["name"]
            assert claim["metadata"]["name"].startswith(f"{first}-extended-resources-")
            assert [each["resourceName"] for each in status["requestMappings"]] == [EXTENDED_RESOURCE]
            assert len(at.taken()) == 2
            assert at.users(claim["metadata"]["name"]) == [first]
            at.stage.delete_pod(first)
            await at.stage.until(lambda: at.stage.placed(second), "the other one has them now")


async def test_devices_that_cannot_be_attached_are_given_back() -> None:
    async with devices(2, count=1, kind=DeviceKind.ATTACHED, attach_seconds=3600.0) as at:
        at.claim("mine")
        at.pod("web", {"resourceClaimName": "mine"})
        async with operator(at.stage):
            await at.stage.until(at.taken, "the claim is written")
            (claim,) = at.claims()
            (result,) = claim["status"]["allocation"]["devices"]["results"]
            failed = {"type": ATTACH_FAILED, "status": "True", "reason": "Broken", "message": "no light", "lastTransitionTime": EARLIER}
            said = {key: result[key] for key in ("driver", "pool", "device")} | {"conditions": [failed]}

            def breaks(current: Body) -> None:
                current["status"]["devices"] = [said]

            at.stage.sandbox.writes.modify(at.claim_type, "default", "mine", breaks)
            device = (result["pool"], result["device"])
            await at.stage.until(lambda: at.taken() != [device], "it is given back")
            await at.stage.until(lambda: any(TOLD in message for _, message in at.stage.events("web")), "the pod says why")
            assert not at.stage.placed("web")
