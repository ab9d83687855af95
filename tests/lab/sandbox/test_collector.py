"""What goes when something else has gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from kubesandbox.controllers.collector import Collector
from kubesandbox.status import ApiError
from kubesandbox.storage.writes import DeleteOptions
from lab.sandbox.makers import Core, Object, a_pod, config_map


async def settled(done: Callable[[], bool]) -> None:
    """Let the work happen that was put off for "a moment later", until `done` or a deadline of turns."""
    for _ in range(100):
        if done():
            return
        await asyncio.sleep(0)
    pytest.fail("it did not happen")


def owned(name: str, *owners: Object) -> Object:
    content = config_map(name)
    content["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]} for owner in owners
    ]
    return content


def collected() -> Core:
    core = Core()
    Collector(core.writes)
    return core


def delete(core: Core, name: str, *, orphan: bool = False) -> None:
    core.writes.delete(core.type("configmaps"), "default", name, DeleteOptions(orphan=orphan))


async def test_dependents_go_with_their_owner_and_theirs_with_them() -> None:
    core = collected()
    owner = core.create("configmaps", config_map("owner"))
    child = core.create("configmaps", owned("child", owner))
    core.create("configmaps", owned("grandchild", child))
    core.create("configmaps", config_map("bystander"))
    delete(core, "owner")
    await settled(lambda: core.get("configmaps", "grandchild") is None)
    assert core.get("configmaps", "child") is None
    assert core.get("configmaps", "bystander") is not None


async def test_a_dependent_with_another_owner_stays() -> None:
    core = collected()
    owners = [core.create("configmaps", config_map(name)) for name in ("one", "two")]
    core.create("configmaps", owned("child", *owners))
    core.create("configmaps", owned("only", owners[0]))
    delete(core, "one")
    await settled(lambda: core.get("configmaps", "only") is None)
    assert core.get("configmaps", "child") is not None
    delete(core, "two")
    await settled(lambda: core.get("configmaps", "child") is None)


async def test_orphans_stay_and_lose_the_reference() -> None:
    core = collected()
    owner = core.create("configmaps", config_map("owner"))
    core.create("configmaps", owned("child", owner))
    delete(core, "owner", orphan=True)

    def is_orphan() -> bool:
        found = core.get("configmaps", "child")
        assert found is not None
        return "ownerReferences" not in found["metadata"]

    await settled(is_orphan)


async def test_a_namespace_takes_its_contents_with_it_and_takes_in_nothing_meanwhile() -> None:
    core = collected()
    core.create("namespaces", {"metadata": {"name": "team"}})
    held = config_map("held")
    held["metadata"]["finalizers"] = ["example.test/hold"]
    core.create("configmaps", held, namespace="team")
    core.create("pods", a_pod("web"), namespace="team")
    core.create("configmaps", config_map("elsewhere"))
    core.writes.delete(core.type("namespaces"), "", "team")
    await settled(lambda: core.get("pods", "web", "team") is None)
    namespace = core.get("namespaces", "team")
    assert namespace is not None
    assert namespace["status"]["phase"] == "Terminating"
    with pytest.raises(ApiError) as caught:
        core.create("configmaps", config_map("late"), namespace="team")
    assert (caught.value.code, caught.value.details["causes"][0]["reason"]) == (403, "NamespaceTerminating")
    core.writes.modify(core.type("configmaps"), "team", "held", lambda found: found["metadata"].pop("finalizers"))
    await settled(lambda: core.get("namespaces", "team") is None)
    assert core.get("configmaps", "elsewhere") is not None


async def test_an_empty_namespace_goes_as_well() -> None:
    core = collected()
    core.create("namespaces", {"metadata": {"name": "team"}})
    core.writes.delete(core.type("namespaces"), "", "team")
    await settled(lambda: core.get("namespaces", "team") is None)
    assert core.get("namespaces", "default") is not None


async def test_the_namespaces_of_the_system_may_not_be_deleted() -> None:
    core = collected()
    with pytest.raises(ApiError) as caught:
        core.writes.delete(core.type("namespaces"), "", "default")
    assert caught.value.code == 403
