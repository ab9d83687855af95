"""Checks the operator: its version, its pods, and the replica that leads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from placewright.cli.doctor.patient import DEPLOYMENT, CheckResult, Level, Object, Patient, fail, moment, ok, warn
from placewright.cli.profiles.namedprofiles import condition
from placewright.leadership.leaseobject import LEASE_NAME
from placewright.leadership.peering import PEERING_NAME

_IMAGE: Final = "image"
_VERSION: Final = "app.kubernetes.io/version"
_NOT_PULLED: Final = frozenset(
    {"ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError", "RegistryUnavailable"}
)
_CRASHES: Final = frozenset({"CrashLoopBackOff", "RunContainerError", "CreateContainerConfigError", "CreateContainerError"})
_BUILD: Final = (
    "no image is published: build the Dockerfile, push it, and name it in `images` of a kustomization or image.repository of the chart"
)
#: Seconds between the end of a Lease and the moment at which a waiting replica takes it.
_GRACE_SECONDS: Final = 5.0
_INSTALL: Final = (
    "install it (README.md), or name its namespace with --operator-namespace; `placewright run` on another machine is not seen here"
)


async def operator(patient: Patient) -> list[CheckResult]:
    """Check that the Deployment exists and has this version.

    Args:
        patient: the cluster; its `deployment` is set.
    """
    found = patient.deployment = await patient.read(f"/apis/apps/v1/namespaces/{patient.namespace}/deployments/{DEPLOYMENT}")
    if found is None:
        return [warn("operator", f"there is no Deployment {DEPLOYMENT} in namespace {patient.namespace}", _INSTALL)]
    labels = {**(found["metadata"].get("labels") or {}), **(_template(found)["metadata"].get("labels") or {})}
    version = labels.get(_VERSION)
    if not version:
        return [warn("operator", f"the Deployment does not say its version (label {_VERSION})", "apply the manifests of a version")]
    if version != patient.version:
        said = f"the operator is {version}, this placewright is {patient.version}"
        return [warn("operator", said, "use the same version: another one may check and explain differently from the operator")]
    return [ok("operator", f"version {version}, as this placewright")]


async def pods(patient: Patient) -> list[CheckResult]:
    """Check that the Deployment's pods run, and that their image can be pulled."""
    if patient.deployment is None:
        return []
    wanted = int(patient.deployment["spec"].get("replicas", 1))
    if not wanted:
        return [warn("pods", "the Deployment is scaled to 0", f"kubectl -n {patient.namespace} scale deployment/{DEPLOYMENT} --replicas 2")]
    labels = patient.deployment["spec"]["selector"].get("matchLabels") or {}
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    listed = await patient.read(f"/api/v1/namespaces/{patient.namespace}/pods", {"labelSelector": selector})
    found: list[Object] = list((listed or {}).get("items") or ())
    problems = [problem for pod in found for problem in _problems(patient.namespace, pod)]
    if any(map(_has_image, found)) and not any(each.check == _IMAGE for each in problems):
        problems.append(ok(_IMAGE, f"{_image(patient.deployment)} can be had"))
    return [*problems, *([] if any(each.level is Level.FAIL for each in problems) else [_how_many(patient, found, wanted)])]


def _how_many(patient: Patient, found: list[Object], wanted: int) -> CheckResult:
    if not found:
        assert patient.deployment is not None
        told = condition(patient.deployment, "ReplicaFailure").get("message") or "its status gives no reason"
        do = f"kubectl -n {patient.namespace} describe replicaset"
        return fail("pods", f"the Deployment wants {wanted} pods, and there is none: {told}", do)
    ready = sum(condition(pod, "Ready").get("status") == "True" for pod in found)
    if ready < wanted:
        return warn("pods", f"{ready} of {wanted} are ready", f"kubectl -n {patient.namespace} get pods, and their logs")
    return ok("pods", f"{ready} of {wanted} are ready")


def _has_image(pod: Object) -> bool:
    """Whether a container was started."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return any((each.get("state") or {}).keys() & {"running", "terminated"} for each in statuses)


def _image(deployment: Object) -> str:
    containers: list[Object] = _template(deployment).get("spec", {}).get("containers") or [{}]
    return str(containers[0].get("image"))


def _problems(namespace: str, pod: Object) -> Iterator[CheckResult]:
    name, spec, status = pod["metadata"]["name"], pod.get("spec") or {}, pod.get("status") or {}
    if not spec.get("nodeName"):
        why = condition(pod, "PodScheduled").get("message") or f"{spec.get('schedulerName')} has said nothing"
        yield fail("pods", f"pod {name} has no node: {why}", f"they are placed by {spec.get('schedulerName')}, never by Placewright")
    for each in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        waiting = (each.get("state") or {}).get("waiting") or {}
        reason, image = waiting.get("reason"), each.get("image")
        if reason in _NOT_PULLED:
            yield fail(_IMAGE, f"pod {name}: image {image} cannot be had ({reason})", _BUILD)
        elif reason in _CRASHES:
            do = f"kubectl -n {namespace} logs {name} --previous"
            yield fail("pods", f"pod {name}: {reason} {waiting.get('message', '')}".rstrip(), do)


async def leader(patient: Patient) -> list[CheckResult]:
    """Check which replica holds the Lease, and that it renews it."""
    if patient.deployment is not None and "--leader-elect=false" in _arguments(patient.deployment):
        return [ok("leader", "the only replica, by --leader-elect=false")]
    found: list[CheckResult] = []
    peering = await patient.read(f"/apis/kopf.dev/v1/clusterkopfpeerings/{PEERING_NAME}")
    if peering is None:
        do = "apply manifests/base (peering.yaml), after the definitions"
        found.append(fail("leader", f"there is no ClusterKopfPeering {PEERING_NAME}", do))
    lease = await patient.read(f"/apis/coordination.k8s.io/v1/namespaces/{patient.namespace}/leases/{LEASE_NAME}")
    return [*found, _held(patient, (lease or {}).get("spec") or {}, exists=lease is not None)]


def _held(patient: Patient, spec: Object, *, exists: bool) -> CheckResult:
    logs = _INSTALL if patient.deployment is None else f"kubectl -n {patient.namespace} get pods, and their logs"
    if not spec.get("holderIdentity"):
        what = "no replica holds" if exists else "there is no"
        return fail("leader", f"{what} Lease {patient.namespace}/{LEASE_NAME}: no replica leads, so no pod of a profile is placed", logs)
    renewed = moment(spec.get("renewTime"))
    since = patient.seconds_since(renewed) if renewed else 0.0
    if renewed is None or since > float(spec.get("leaseDurationSeconds") or 0) + _GRACE_SECONDS:
        said = f"{spec['holderIdentity']} holds the Lease and has not renewed it for {since:.0f} s: no replica leads"
        return fail("leader", said, logs)
    return ok("leader", f"{spec['holderIdentity']} leads, and renewed its Lease {since:.0f} s ago")


def _template(deployment: Object) -> Object:
    template: Object = deployment["spec"]["template"]
    return {"metadata": {}, **template}


def _arguments(deployment: Object) -> list[str]:
    containers = _template(deployment).get("spec", {}).get("containers") or ()
    return [argument for each in containers for argument in (*(each.get("command") or ()), *(each.get("args") or ()))]
