"""At most so many pods of an application on a node: the sample at work, from the first pod to the one that waits."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, Final

import pytest

from handlers.stage import Stage, new_stage
from placewright.api.annotations import DOMAIN_LIMITS
from placewright.cli.main import main
from serving.desk import Desk, desk

from .samples import apply_sample, sample

SAMPLE: Final = "domain-limit.yaml"
HOST: Final = "kubernetes.io/hostname"
FULL: Final = f"node(s) would exceed the limit of 2 pods per {HOST}"
#: Two nodes in one zone, and one in another.
ZONES: Final = {"a": "eu-1a", "b": "eu-1a", "c": "eu-1b"}

Object = dict[str, Any]


class Shop:
    """A stage with the sample on it, and pods of applications."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self._pods = stage.sandbox.resource("", "v1", "pods")
        nodes = stage.sandbox.resource("", "v1", "nodes")
        for name, zone in ZONES.items():
            labels = {HOST: name, "topology.kubernetes.io/zone": zone}
            amounts = {"cpu": "4", "memory": "16Gi", "pods": "110"}
            status = {"allocatable": amounts, "capacity": amounts}
            stage.sandbox.writes.create(nodes, "", {"metadata": {"name": name, "labels": labels}, "status": status})
        self._scheduler = apply_sample(stage, SAMPLE)

    def pod(self, name: str, app: str, **annotations: str) -> str:
        """A small pod of an application."""
        container = {"name": "main", "image": "example.test/main", "resources": {"requests": {"cpu": "10m"}}}
        metadata = {"name": name, "labels": {"app": app}, "annotations": annotations}
        spec = {"schedulerName": self._scheduler, "containers": [container]}
        self.stage.sandbox.writes.create(self._pods, "default", {"metadata": metadata, "spec": spec})
        return name

    def allow(self, most: int) -> None:
        """As `kubectl edit` would: the first limit gets another maximum."""
        configs = sample(SAMPLE)["spec"]["pluginConfig"]
        configs[0]["args"]["limits"][0]["max"] = most
        self.stage.edit_profile("domain-limit", pluginConfig=configs)

    async def placed(self, *names: str) -> Counter[str]:
        """Wait until these pods have nodes; how many are on each."""
        await self.stage.until(lambda: self.stage.placed(*names), f"{', '.join(names)} placed")
        return Counter(map(self.stage.node_of, names))

    async def told(self, name: str, message: str) -> None:
        """Wait until the pod's condition has these words."""
        await self.stage.until(lambda: message in self.stage.condition(name).get("message", ""), f"{name} is told {message}")


async def explained(asked: Desk, name: str, capsys: pytest.CaptureFixture[str]) -> str:
    """The words of `placewright explain`."""
    token = asked.engine.access.authorization.removeprefix("Bearer ")
    server = ("--server", f"https://127.0.0.1:{asked.served.port}", f"--token={token}")
    kubeconfig = str(asked.stage.sandbox.kubeconfig)
    capsys.readouterr()
    assert await asyncio.to_thread(main, ["explain", "--kubeconfig", kubeconfig, name, *server]) == 0
    return " ".join(capsys.readouterr().out.split())


async def test_the_sample_keeps_an_application_to_two_pods_a_node(capsys: pytest.CaptureFixture[str]) -> None:
    async with new_stage() as stage:
        shop = Shop(stage)
        async with desk(stage) as asked:
            await asked.until_ready()
            first = [shop.pod(f"web-{number}", "web") for number in range(3)]
            await shop.placed(*first)
            others = [shop.pod(f"web-{number}", "web") for number in range(3, 6)]
            assert await shop.placed(*first, *others) == {"a": 2, "b": 2, "c": 2}

            shop.pod("web-6", "web")
            await shop.told("web-6", f"0/3 nodes are available: 3 {FULL}.")
            assert sum((await shop.placed(shop.pod("db-0", "db"))).values()) == 1, "another application counts by itself"
            words = await explained(asked, "web-6", capsys)
            on_a = ", ".join(f"default/{name}" for name in sorted((*first, *others)) if stage.node_of(name) == "a")
            assert f"1 pod fewer in {HOST}=a, which has 2 of at most 2 pods: {on_a}" in words

            where = stage.node_of("web-0")
            stage.delete_pod("web-0")
            assert await shop.placed("web-6") == {where: 1}

            shop.pod("web-7", "web")
            await shop.told("web-7", FULL)
            shop.allow(3)
            await shop.placed("web-7")

            shop.pod("web-8", "web", **{DOMAIN_LIMITS: "1 per topology.kubernetes.io/zone of app"})
            await shop.told("web-8", "2 node(s) would exceed the limit of 1 pod per topology.kubernetes.io/zone")
            shop.pod("web-9", "web", **{DOMAIN_LIMITS: "one per zone"})
            await shop.told("web-9", f'annotation {DOMAIN_LIMITS}: found "one per zone"')
            assert stage.bound_twice() == []
