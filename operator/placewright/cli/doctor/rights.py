"""Compares the rights of the operator's service account with the rights that it needs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from placewright.cli.doctor.patient import CheckResult, Patient, fail, ok, warn
from placewright.engine.ownrole import NEEDS as OWN_NEEDS
from placewright.engine.permissions import Permission, declared_needs, needs
from placewright.framework.registry import Registry, installed_plugins
from placewright.kube.errors import FORBIDDEN, ApiError
from placewright.serving.reviews import ACCESS_REVIEWS

#: Access reviews under way at once: there are many rights, and each review costs a round trip.
_AT_ONCE: Final = 16
_SHOWN: Final = 3
_APPLY_OTHERS: Final = "apply the role of the plugin's package, bound to that service account (docs/plugins.md)"
_APPLY: Final = "apply manifests/base (clusterrole.yaml, clusterrolebinding.yaml, role.yaml, rolebinding.yaml), of the operator's version"


class _Right(NamedTuple):
    verb: str
    group: str
    resource: str
    name: str
    namespace: str

    def __str__(self) -> str:
        where = f".{self.group}" if self.group else ""
        resource, _, part = self.resource.partition("/")
        return f"{self.verb} {resource}{where}{f'/{part}' if part else ''}"

    def attributes(self) -> dict[str, str]:
        """Write the right in the form of an access review."""
        resource, _, part = self.resource.partition("/")
        asked = {"verb": self.verb, "group": self.group, "resource": resource, "subresource": part}
        return {key: value for key, value in {**asked, "name": self.name, "namespace": self.namespace}.items() if value}


async def rights(patient: Patient) -> list[CheckResult]:
    """Check each right that the operator needs."""
    account = _account(patient)
    if patient.deployment is None and await patient.read(f"/api/v1/namespaces/{patient.namespace}/serviceaccounts/{account}") is None:
        said = f"there is no service account {account} in namespace {patient.namespace}: it has no rights to check"
        return [warn("rights", said, "none is needed by an operator that runs with a kubeconfig; otherwise apply manifests/base")]
    others = declared()
    wanted = [(need, right) for need in (*needs(), *OWN_NEEDS, *others) for right in _rights_of(need, patient.namespace)]
    allowed = await _allowed(patient, account, [right for _, right in wanted])
    if allowed is None:
        said = "not checked: you may not create subjectaccessreviews.authorization.k8s.io"
        return [warn("rights", said, "ask a person who may, such as a cluster-admin")]
    lacking = [(need, right) for (need, right), granted in zip(wanted, allowed, strict=True) if not granted]
    return list(_told(account, lacking, {need.plugin for need in others})) or [
        ok("rights", f"service account {account} has the {len(wanted)} rights that it needs")
    ]


def declared() -> list[Permission]:
    """Return the needs of installed plugins of other packages, which should be the same as where the operator runs."""
    installed = Registry(()).with_installed(installed_plugins())
    return list(declared_needs(installed.sources.values(), installed.patches()))


def _rights_of(need: Permission, namespace: str) -> Iterator[_Right]:
    where = namespace if need in OWN_NEEDS else ""
    for rule in need.rules:
        for resource in rule.resources:
            for verb in rule.verbs:
                for name in rule.names or ("",):
                    yield _Right(verb, rule.group, resource, name, where)


def _told(account: str, lacking: list[tuple[Permission, _Right]], others: set[str]) -> Iterator[CheckResult]:
    """Report missing rights: a failure for rights that are always needed, a warning for one plugin's, which may be left out on purpose."""
    always = [right for need, right in lacking if not need.plugin]
    if always:
        yield fail("rights", f"service account {account} may not {_some(always)}", _APPLY)
    by_plugin: dict[str, list[_Right]] = {}
    for need, right in lacking:
        if need.plugin:
            by_plugin.setdefault(need.plugin, []).append(right)
    for plugin, missing in by_plugin.items():
        apply = _APPLY_OTHERS if plugin in others else _APPLY
        said = f"service account {account} may not {_some(missing)}: pods wait that need {plugin} for that"
        yield warn("rights", said, f"nothing, if no profile needs that plugin; otherwise {apply}")


def _some(missing: list[_Right]) -> str:
    shown = ", ".join(map(str, missing[:_SHOWN]))
    more = len(missing) - _SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _account(patient: Patient) -> str:
    spec = patient.deployment["spec"]["template"].get("spec", {}) if patient.deployment else {}
    return str(spec.get("serviceAccountName") or "placewright")


async def _allowed(patient: Patient, account: str, asked: list[_Right]) -> list[bool] | None:
    """Whether the account has each right; None if we may not ask."""
    turn = asyncio.Semaphore(_AT_ONCE)
    # Rights may be bound to the groups that the API server gives every service account.
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{patient.namespace}", "system:authenticated"]
    subject = {"user": f"system:serviceaccount:{patient.namespace}:{account}", "groups": groups}

    async def one(right: _Right) -> bool:
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {**subject, "resourceAttributes": right.attributes()},
        }
        async with turn:
            answer: Any = msgspec.json.decode(await patient.client.post(ACCESS_REVIEWS, review))
        return bool((answer.get("status") or {}).get("allowed"))

    try:
        first = await one(asked[0])  # alone, so that one refusal is enough if we may not ask
    except ApiError as problem:
        if problem.status == FORBIDDEN:
            return None
        raise
    return [first, *await asyncio.gather(*map(one, asked[1:]))]
