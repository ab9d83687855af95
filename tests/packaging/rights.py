"""Placewright installed in a sandbox with the role that is shipped, or with less, and run as its ServiceAccount."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from handlers.stage import DEADLINE, FAST, Running, Stage, new_stage
from inputs.workloads import definition
from kubesandbox.auth.access import Asked, User
from kubesandbox.devices.layouts import DeviceLayout
from kubesandbox.resources import ResourceType
from placewright.engine.engine import build_engine
from placewright.handlers.operator import run_engine
from placewright.kube.auth.login import load_config

from .building import documents

Manifest = dict[str, Any]
BASE: Final = Path(__file__).parents[2] / "manifests" / "base"
NAMESPACE: Final = "placewright-system"
ACCOUNT: Final = User.service_account(NAMESPACE, "placewright")
_NEEDED_FIRST: Final = ("namespace", "serviceaccount", "clusterrole", "clusterrolebinding", "role", "rolebinding", "peering")


@dataclass(frozen=True, order=True)
class Right:
    """One verb on one resource."""

    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}" + (f".{self.group}" if self.group else "")

    def covers(self, asked: Asked) -> bool:
        return (asked.group, asked.resource, asked.verb) == (self.group, self.resource, self.verb)


#: What only DynamicResources needs.
DEVICE_RIGHTS: Final = frozenset(
    {Right("resource.k8s.io", "resourceclaims", verb) for verb in ("get", "create", "update", "patch", "delete")}
    | {Right("resource.k8s.io", f"resourceclaims/{part}", verb) for part in ("status", "binding") for verb in ("update", "patch")}
)


#: What only GangScheduling needs.
GROUP_RIGHTS: Final = frozenset(
    {
        Right("scheduling.x-k8s.io", "podgroups/status", "patch"),
        Right("scheduling.k8s.io", "podgroups/status", "patch"),
        Right("scheduling.k8s.io", "compositepodgroups/status", "patch"),
    }
)
GROUP_DEFINITIONS: Final = BASE.parents[1] / "crds" / "groups" / "podgroups.yaml"


def shipped(name: str) -> Manifest:
    """A manifest of the base, which the caller may change."""
    (found,) = documents((BASE / f"{name}.yaml").read_text())
    return found


def rights_of(role: Manifest) -> list[Right]:
    """Every right that a role gives, once."""
    return sorted(
        {
            Right(group, resource, verb)
            for rule in role["rules"]
            for group in rule["apiGroups"]
            for resource in rule["resources"]
            for verb in rule["verbs"]
        }
    )


def role_without(role: Manifest, right: Right) -> Manifest:
    """The role with one right taken away and all others left."""
    less = copy.deepcopy(role)
    less["rules"] = [part for rule in role["rules"] for part in _split(rule, right)]
    return less


def _split(rule: Manifest, right: Right) -> list[Manifest]:
    """A rule as one rule for each group and resource, so that one verb of one of them can go."""
    return [
        {**rule, "apiGroups": [group], "resources": [resource], "verbs": verbs}
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        if (verbs := [verb for verb in rule["verbs"] if Right(group, resource, verb) != right])
    ]


class Refused(AssertionError):
    """The API server refused the operator something."""

    def __init__(self, asked: Asked) -> None:
        super().__init__(str(asked))
        self.asked = asked


class Trial:
    """A stage whose operator is the ServiceAccount, and who is told of each refusal."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    def refused(self) -> Asked | None:
        """What the operator was refused first."""
        refusals = self.stage.sandbox.access.authorizer.refusals
        return next((each.asked for each in refusals if each.user == ACCOUNT), None)

    async def until(self, condition: Callable[[], Any], what: str) -> None:
        """Wait until the condition holds. Raises `Refused` as soon as the operator is refused anything."""
        await self.stage.until(lambda: self.refused() or condition(), what)
        if (asked := self.refused()) is not None:
            raise Refused(asked)

    @asynccontextmanager
    async def operator(self) -> AsyncIterator[Running]:
        """An operator with the ServiceAccount's token and nothing else."""
        engine = build_engine(load_config(str(self.kubeconfig())), FAST)
        stop = asyncio.Event()
        task = asyncio.create_task(run_engine(engine, stop))
        try:
            yield Running(engine, task, stop)
        finally:
            self._allow_everything()  # what was refused is tried again for a while, and the end waits for it
            stop.set()
            async with asyncio.timeout(DEADLINE):
                await asyncio.gather(task, return_exceptions=True)

    def _allow_everything(self) -> None:
        for name in ("clusterrole", "role"):
            self._allow(shipped(name))

    def _allow(self, role: Manifest) -> None:
        resource = self.stage.sandbox.resource("rbac.authorization.k8s.io", "v1", f"{role['kind'].lower()}s")
        name, namespace = role["metadata"]["name"], role["metadata"].get("namespace", "")
        self.stage.sandbox.writes.modify(resource, namespace, name, lambda current: current.update(rules=role["rules"]))

    def kubeconfig(self) -> Path:
        """Of the ServiceAccount."""
        path = self.stage.sandbox.kubeconfig.with_name("operator.kubeconfig")
        path.write_bytes(self.stage.account_kubeconfig(NAMESPACE, "placewright"))
        return path

    def watched(self) -> set[tuple[str, str]]:
        """(group, plural) of everything on which a watch is open."""
        return {(each.view.resource.group, each.view.resource.plural) for each in self.stage.sandbox.watches._open}


@asynccontextmanager
async def new_trial(role: Manifest) -> AsyncIterator[Trial]:
    """A sandbox with volumes and devices, everything that is shipped but the Deployment, and this role in place of the one shipped."""
    async with new_stage(volumes=True, devices=DeviceLayout(count=1)) as stage:
        for name in _NEEDED_FIRST:
            manifest = shipped(name)
            manifest = role if manifest["kind"] == role["kind"] else manifest
            resource = stage.sandbox.registry.by_kind(manifest["apiVersion"], manifest["kind"])
            assert isinstance(resource, ResourceType), manifest["kind"]
            namespace = NAMESPACE if resource.namespaced else ""
            stage.sandbox.writes.create(resource, namespace, copy.deepcopy(manifest))
        define_groups(stage)
        yield Trial(stage.profile())


def define_groups(stage: Stage) -> None:
    """Every way to declare groups of pods; the sandbox itself knows only Kubernetes' own of today."""
    definitions = stage.sandbox.resource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
    (ours,) = documents(GROUP_DEFINITIONS.read_text())
    anything: Manifest = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    workload = definition("scheduling.k8s.io", "Workload", "workloads", anything, version="v1alpha1")
    for content in (ours, definition("scheduling.volcano.sh", "PodGroup", "podgroups", anything, version="v1beta1"), workload):
        stage.sandbox.writes.create(definitions, "", content)
