"""Somebody at a terminal with `placewright profiles`, beside a stage."""

from __future__ import annotations

import asyncio
import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from handlers.stage import Object, Stage
from placewright.cli.main import main
from placewright.kube.history import DEFAULT_NAMESPACE, MESSAGE, PROFILE_LABEL, RESULT


@dataclass(frozen=True)
class Ran:
    """What a command left."""

    code: int
    out: str
    err: str

    def rows(self) -> list[list[str]]:
        """Words by line."""
        return [line.split() for line in self.out.splitlines()]


@dataclass(frozen=True)
class Desk:
    """Runs commands in a thread: they have an event loop of their own, and the sandbox answers in ours."""

    stage: Stage
    capsys: pytest.CaptureFixture[str]
    kubeconfig: Path | None = None

    async def __call__(self, *words: str) -> Ran:
        self.capsys.readouterr()
        kubeconfig = self.kubeconfig or self.stage.sandbox.kubeconfig
        code = await asyncio.to_thread(main, ["profiles", words[0], "--kubeconfig", str(kubeconfig), *words[1:]])
        return Ran(code, *self.capsys.readouterr())

    def create(self, group: str, plural: str, content: Object, namespace: str = "") -> None:
        resource = self.stage.sandbox.resource(group, "v1", plural)
        self.stage.sandbox.writes.create(resource, namespace, copy.deepcopy(content))

    def namespace(self) -> None:
        """Where history is kept."""
        self.create("", "namespaces", {"metadata": {"name": DEFAULT_NAMESPACE}})

    def somebody(self, name: str, rights: list[tuple[str, str, list[str]]]) -> Desk:
        """The same desk with a person who has these rights, and no others, in the whole cluster."""
        self.create("", "serviceaccounts", {"metadata": {"name": name}}, "default")
        rules = [{"apiGroups": [group], "resources": [resource], "verbs": verbs} for group, resource, verbs in rights]
        rbac = "rbac.authorization.k8s.io"
        self.create(rbac, "clusterroles", {"metadata": {"name": name}, "rules": rules})
        role = {"apiGroup": rbac, "kind": "ClusterRole", "name": name}
        subjects = [{"kind": "ServiceAccount", "name": name, "namespace": "default"}]
        self.create(rbac, "clusterrolebindings", {"metadata": {"name": name}, "roleRef": role, "subjects": subjects})
        path = self.stage.sandbox.kubeconfig.with_name(f"{name}.kubeconfig")
        path.write_bytes(self.stage.account_kubeconfig("default", name))
        return replace(self, kubeconfig=path)

    def record(self, profile: str, number: int, spec: Object, *, result: str = "Active", by: str = "kubectl") -> None:
        """A revision, as the operator would write it."""
        uid = self.stage.show_profile(profile)["metadata"]["uid"]
        data = {"profile": profile, "uid": uid, "generation": number, "changedBy": by, "changedAt": "2026-01-01T00:00:00Z", "spec": spec}
        self.record_data(profile, number, data, result)

    def record_data(self, profile: str, number: int, data: Any, result: str = "Active") -> None:
        notes = {RESULT: result, MESSAGE: "so it is"}
        metadata = {"name": f"{profile}-{number}", "labels": {PROFILE_LABEL: profile}, "annotations": notes}
        self.create("apps", "controllerrevisions", {"metadata": metadata, "revision": number, "data": data}, DEFAULT_NAMESPACE)

    async def until_judged(self, name: str, generation: int) -> None:
        """Until the operator has said what came of a generation."""
        await self.stage.until(
            lambda: (self.stage.show_profile(name).get("status") or {}).get("observedGeneration", 0) >= generation, "it is judged"
        )

    async def until_recorded(self, count: int) -> None:
        """Until so many revisions are there."""
        key = self.stage.sandbox.resource("apps", "v1", "controllerrevisions").key
        await self.stage.until(lambda: len(self.stage.sandbox.store.listed(key)) >= count, f"{count} revisions are there")
