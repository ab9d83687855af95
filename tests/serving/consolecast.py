"""A real operator with its console, and accounts of different rights who look into it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest

from handlers.stage import Stage, new_stage
from placewright.serving import readerrights
from placewright.serving.readerrights import ENTER
from placewright_console.live import streams

from .desk import Desk, desk

RBAC: Final = "rbac.authorization.k8s.io"
#: Found nowhere in what a reader of another namespace gets.
SECRET: Final = "ledger-of-the-bank"
READ: Final = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}
COME_IN: Final = {"nonResourceURLs": [ENTER.path], "verbs": [ENTER.verb]}


class Cast:
    """Accounts in the namespace `default`, and their rights."""

    def __init__(self, stage: Stage) -> None:
        self.sandbox = stage.sandbox

    def person(self, name: str, *everywhere: dict[str, Any], here: dict[str, Any] | None = None) -> str:
        """Returns the token."""
        self._create("", "serviceaccounts", "default", {"metadata": {"name": name}})
        for kind, namespace, rules in (("Cluster", "", list(everywhere)), ("", "default", [here] if here else [])):
            if rules:
                plural = f"{kind.lower()}roles"
                self._create(RBAC, plural, namespace, {"metadata": {"name": name}, "rules": rules})
                subject = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
                reference = {"apiGroup": RBAC, "kind": f"{kind}Role", "name": name}
                binding = {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}
                self._create(RBAC, f"{plural[:-1]}bindings", namespace, binding)
        return self.sandbox.access.new_token("default", name)

    def namespace(self, name: str) -> None:
        self._create("", "namespaces", "", {"metadata": {"name": name}})

    def pod(self, name: str, namespace: str, cpu: str = "100m", claim: str = "", **more: Any) -> None:
        container = {"name": "main", "image": "example.test/main", "resources": {"requests": {"cpu": cpu}}}
        volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}] if claim else []
        spec = {"schedulerName": "placewright", "containers": [container], "volumes": volumes, **more}
        self._create("", "pods", namespace, {"metadata": {"name": name}, "spec": spec})

    def beside(self, name: str, namespace: str) -> dict[str, Any]:
        """An affinity to the node of a pod."""
        node = self.sandbox.writes.current(self.sandbox.resource("", "v1", "pods"), namespace, name).object["spec"]["nodeName"]
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
        return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}

    def priority_class(self, name: str, value: int) -> None:
        self._create("scheduling.k8s.io", "priorityclasses", "", {"metadata": {"name": name}, "value": value})

    def delete(self, plural: str, name: str, namespace: str = "") -> None:
        group = RBAC if "role" in plural else ""
        self.sandbox.writes.delete(self.sandbox.resource(group, "v1", plural), namespace, name)

    def _create(self, group: str, plural: str, namespace: str, content: dict[str, Any]) -> None:
        self.sandbox.writes.create(self.sandbox.resource(group, "v1", plural), namespace, content)


@asynccontextmanager
async def at_work() -> AsyncIterator[tuple[Desk, Cast]]:
    """An operator that leads, with a pod placed in each of two namespaces."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(streams, "RIGHTS_SECONDS", 0.1)
        patched.setattr(streams, "BEAT", 0.05)
        patched.setattr(readerrights, "KEPT_SECONDS", 0.2)
        async with operator_with_console() as found:
            yield found


@asynccontextmanager
async def operator_with_console() -> AsyncIterator[tuple[Desk, Cast]]:
    async with new_stage() as stage:
        cast = Cast(stage.profile().nodes(2))
        cast.namespace("bank")
        async with desk(stage, console=True) as asked:
            await asked.until_ready()
            cast.pod("web", "default")
            cast.pod(SECRET, "bank", cpu="1")
            await stage.until(lambda: len(stage.bindings) == 2)
            yield asked, cast
