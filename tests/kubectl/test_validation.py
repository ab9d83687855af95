"""What kubectl says when the definition of SchedulingProfiles refuses one: bounds, and rules in CEL with their messages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubectl.tool import Kubectl

pytestmark = pytest.mark.asyncio(loop_scope="session")
URL = "http://extender.example"


def a_profile(name: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name}
    spec = {"schedulerName": "default-scheduler", **spec}
    return {"apiVersion": "placewright.dev/v1alpha1", "kind": "SchedulingProfile", "metadata": metadata, "spec": spec}


REFUSED = (
    ({"backoff": {"initialSeconds": 3, "maxSeconds": 2}}, "maxSeconds is at least initialSeconds, or 0 for no backoff"),
    ({"weights": {"A": 100_001}}, "a weight is 0 (off) to 100000"),
    ({"extenders": [{"urlPrefix": URL}]}, "an extender needs something to do"),
    ({"extenders": [{"urlPrefix": URL, "prioritizeVerb": "p"}]}, "needs a weight of 1 or more"),
    ({"percentageOfNodesToScore": 101}, "should be less than or equal to 100"),
)


async def test_profiles_that_break_a_rule_are_refused_each_with_its_message(profiles: Kubectl) -> None:
    said = await profiles.fails("apply", "-f", "-", given=[a_profile(f"refused-{n}", **spec) for n, (spec, _) in enumerate(REFUSED)])
    assert [why for _, why in REFUSED if why not in said] == []
    assert "refused" not in await profiles("get", "schedprof", "-o", "name")


async def test_the_scheduler_name_of_a_profile_is_immutable(profiles: Kubectl) -> None:
    await profiles("apply", "-f", "-", given=a_profile("steady", schedulerName="steady"))
    said = await profiles.fails("apply", "-f", "-", given=a_profile("steady", schedulerName="other"))
    assert "spec.schedulerName" in said
    assert "schedulerName is immutable" in said
    await profiles("apply", "-f", "-", given=a_profile("steady", schedulerName="steady", paused=True))
    assert (await profiles.read("schedprof", "steady"))["spec"]["paused"] is True


async def test_explain_tells_what_a_field_means(profiles: Kubectl) -> None:
    assert "doubles with every further one" in await profiles("explain", "schedulingprofile.spec.backoff.initialSeconds")


async def test_get_shows_how_profiles_stand_by_short_name_and_by_category(profiles: Kubectl) -> None:
    await profiles("apply", "-f", "-", given=a_profile("shown", schedulerName="seen"))
    status = {"activeGeneration": 7, "pending": {"total": 3}, "conditions": [condition("Ready", "True")]}
    await profiles("patch", "schedprof", "shown", "--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))
    for name in ("schedprof", "placewright", "schedulingprofiles.placewright.dev"):
        head, *rows = (await profiles("get", name)).splitlines()
        assert head.split() == ["NAME", "SCHEDULER", "READY", "REASON", "ACTIVE", "PENDING", "PLUGINS", "AGE"]
        (row,) = [row.split() for row in rows if row.split()[0].endswith("shown")]
        assert row[1:6] == ["seen", "True", "Active", "7", "3"]


def condition(kind: str, status: str) -> dict[str, str]:
    return {"type": kind, "status": status, "reason": "Active", "message": "x", "lastTransitionTime": "2026-01-01T00:00:00Z"}
