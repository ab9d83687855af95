"""Expansion of workloads to the pods that their controllers would make, with names, labels, owners and claims.

There is no controller. A workload is expanded once, in its present form. Names and uids follow from the manifest alone, so two runs make
the same pods. A real controller draws the suffixes at random. Owners' uids are stand-ins (`owner_uid`). The creator of the owners replaces
them by the uids of the API server.

- Deployment: a ReplicaSet and its pods. ReplicaSet, ReplicationController: `replicas` pods.
- StatefulSet: pods `name-0...`, and a claim for each pod and volume claim template.
- DaemonSet: a pod on each node that matches its selector and affinity, if it tolerates the node's taints.
- Job: the first wave, `min(parallelism, completions)` pods, or none if suspended. CronJob: one run, like one Job.
- Volcano Job: the pods of its tasks with its scheduler's name, and a PodGroup that needs `minAvailable` of them. The Job is left out.
"""

from __future__ import annotations

import copy
import hashlib
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from placewright.api.bad_input import bad_field
from placewright.api.objects import Node, NodeSelector, Pod, Taint, Toleration
from placewright.api.podgroups import COSCHEDULING_GROUP, GROUP_LABEL, KIND, TOPOLOGY_KEY, TOPOLOGY_MODE
from placewright.api.selectors import compile_node_selector, selector_from_pairs
from placewright.api.tolerations import first_untolerated
from placewright.offline.kinds import Manifest
from placewright_lab.readers.podcheck import check_pod, check_selector

#: Characters of a label's value.
_LONGEST_LABEL: Final = 63
#: Number of pods that a file may ask for.
MOST_PODS: Final = 200_000
_SAFE: Final = "bcdfghjklmnpqrstvwxz2456789"
_UIDS: Final = uuid.UUID("6f6f2c0a-6a52-4d0b-9a6e-3d7a0f5b5c11")
_NODE: Final = "node.kubernetes.io/"
#: Tolerations that the DaemonSet controller adds to its pods.
_DAEMON_TOLERATIONS: Final = (
    *({"key": f"{_NODE}{k}", "operator": "Exists", "effect": "NoExecute"} for k in ("not-ready", "unreachable")),
    *(
        {"key": f"{_NODE}{k}", "operator": "Exists", "effect": "NoSchedule"}
        for k in ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
    ),
)


@dataclass
class Expanded:
    """The expansion of one workload: its pods, and the objects beside them (ReplicaSet, Job, claims)."""

    pods: list[Manifest] = field(default_factory=list)
    others: list[Manifest] = field(default_factory=list)


def owner_uid(manifest: Mapping[str, Any]) -> str:
    """Return the stand-in uid of an object that has not been created yet."""
    meta = manifest["metadata"]
    return str(uuid.uuid5(_UIDS, f"{manifest['kind']}/{meta.get('namespace', '')}/{meta['name']}"))


def expand(workload: Manifest, where: str, nodes: Sequence[Node]) -> Expanded:
    """Expand a workload. DaemonSets need `nodes`. Raises `InputError` if a field is missing or wrong."""
    source = _Source(workload, where)
    match workload["kind"]:
        case "Deployment":
            return _deployment(source)
        case "ReplicaSet" | "ReplicationController":
            return Expanded(_replicated(source, source.replicas("spec.replicas"), source.template("spec.template"), {}))
        case "StatefulSet":
            return _stateful_set(source)
        case "DaemonSet":
            return _daemon_set(source, nodes)
        case "CronJob":
            return _cron_job(source)
    return _volcano_job(source) if workload["apiVersion"].startswith("batch.volcano.sh/") else _job(source)


def suffix(*parts: object, length: int) -> str:
    """Return letters and digits that follow from the parts, from the alphabet of Kubernetes' generated names."""
    digest = hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).digest()
    number = int.from_bytes(digest)
    return "".join(_SAFE[number // 27**i % 27] for i in range(length))


class _Source:
    """A workload, with access to its fields. Errors name the place and the fault."""

    def __init__(self, workload: Manifest, where: str) -> None:
        self.workload = workload
        self.where = where
        self.name: str = workload["metadata"]["name"]
        self.namespace: str = workload["metadata"].get("namespace", "default")

    def get(self, path: str) -> Any:
        """Return the value at a dotted path, or None. A step into a value that is no mapping is an error."""
        value: Any = self.workload
        walked = ""
        for step in path.split("."):
            if value is None:
                return None
            if not isinstance(value, dict):
                raise bad_field(f"{self.where}: {walked}", value, "a mapping")
            value = value.get(step)
            walked = f"{walked}.{step}".lstrip(".")
        return value

    def replicas(self, path: str, default: int = 1) -> int:
        """Return a count of pods."""
        value = self.get(path)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST_PODS:
            raise bad_field(f"{self.where}: {path}", value, f"a whole number from 0 to {MOST_PODS}")
        return value

    def template(self, path: str) -> Manifest:
        """Return a pod template, checked as a pod."""
        value = self.get(path)
        if not isinstance(value, dict):
            raise bad_field(f"{self.where}: {path}", value, "a pod template with metadata and spec")
        check_pod(value, self.where, f"{path}.")
        return value

    def selected(self, template: Manifest) -> Manifest:
        """Return the workload's selector, which has to match its own template."""
        labels = _labels(template)
        former = self.workload["apiVersion"] != "apps/v1"
        body = self.get("spec.selector") or ({"matchLabels": labels} if former else None)
        if not check_selector(body, f"{self.where}: spec.selector").matches(labels):
            raise bad_field(f"{self.where}: spec.selector", body, f"a selector that matches the template's labels {labels}")
        return dict(body or {})


def _labels(template: Manifest) -> dict[str, str]:
    return dict((template.get("metadata") or {}).get("labels") or {})


def _owner_reference(owner: Manifest) -> Manifest:
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"]}
    return {**reference, "uid": owner_uid(owner), "controller": True, "blockOwnerDeletion": True}


def _pod(source: _Source, name: str, template: Manifest, labels: Mapping[str, str], owner: Manifest | None) -> Manifest:
    template = copy.deepcopy(template)
    meta = template.get("metadata") or {}
    metadata: Manifest = {"name": name, "namespace": source.namespace, "labels": {**_labels(template), **labels}}
    if meta.get("annotations"):
        metadata["annotations"] = meta["annotations"]
    if owner is not None:
        metadata["ownerReferences"] = [_owner_reference(owner)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def _replicated(
    source: _Source, count: int, template: Manifest, labels: Mapping[str, str], owner: Manifest | None = None
) -> list[Manifest]:
    owner = owner or source.workload
    prefix = owner["metadata"]["name"]
    return [_pod(source, f"{prefix}-{suffix(owner_uid(owner), index, length=5)}", template, labels, owner) for index in range(count)]


def _deployment(source: _Source) -> Expanded:
    template = source.template("spec.template")
    selector = source.selected(template)
    count = source.replicas("spec.replicas")
    code = suffix(template, length=10)
    labels = {**_labels(template), "pod-template-hash": code}
    replica_set = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{source.name}-{code}",
            "namespace": source.namespace,
            "labels": labels,
            "ownerReferences": [_owner_reference(source.workload)],
        },
        "spec": {
            "replicas": count,
            "selector": {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), "pod-template-hash": code}},
            "template": {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}},
        },
    }
    return Expanded(_replicated(source, count, template, labels, replica_set), [replica_set])


def _stateful_set(source: _Source) -> Expanded:
    template = source.template("spec.template")
    source.selected(template)
    revision = f"{source.name}-{suffix(template, length=10)}"
    claims = _claim_templates(source)
    made = Expanded()
    for ordinal in range(source.replicas("spec.replicas")):
        name = f"{source.name}-{ordinal}"
        labels = {
            "statefulset.kubernetes.io/pod-name": name,
            "apps.kubernetes.io/pod-index": str(ordinal),
            "controller-revision-hash": revision,
        }
        pod = _pod(source, name, template, labels, source.workload)
        for claim in claims:
            made.others.append(_claim(source, claim, name))
            _mount(pod, claim["metadata"]["name"], name)
        made.pods.append(pod)
    return made


def _claim_templates(source: _Source) -> list[Manifest]:
    templates = source.get("spec.volumeClaimTemplates") or []
    where = f"{source.where}: spec.volumeClaimTemplates"
    if not isinstance(templates, list):
        raise bad_field(where, templates, "a list of claim templates")
    for index, template in enumerate(templates):
        meta = template.get("metadata") if isinstance(template, dict) else None
        if not isinstance(meta, dict) or not isinstance(meta.get("name"), str):
            raise bad_field(f"{where}[{index}].metadata.name", None, "a name")
    return templates


def _claim(source: _Source, template: Manifest, pod: str) -> Manifest:
    name = f"{template['metadata']['name']}-{pod}"
    metadata = {**template["metadata"], "name": name, "namespace": source.namespace}
    spec = copy.deepcopy(template.get("spec") or {})
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def _mount(pod: Manifest, volume: str, pod_name: str) -> None:
    others = [v for v in pod["spec"].get("volumes") or [] if not isinstance(v, dict) or v.get("name") != volume]
    claimed = {"name": volume, "persistentVolumeClaim": {"claimName": f"{volume}-{pod_name}"}}
    pod["spec"]["volumes"] = [*others, claimed]


def _daemon_set(source: _Source, nodes: Sequence[Node]) -> Expanded:
    template = copy.deepcopy(source.template("spec.template"))
    source.selected(template)
    spec = template["spec"]
    extra: list[Manifest] = list(_DAEMON_TOLERATIONS)
    if spec.get("hostNetwork"):
        extra.append({"key": f"{_NODE}network-unavailable", "operator": "Exists", "effect": "NoSchedule"})
    spec["tolerations"] = [*(spec.get("tolerations") or []), *extra]
    labels = {"controller-revision-hash": suffix(template, length=10), "pod-template-generation": "1"}
    wanted = check_pod(template, source.where, "spec.template.")
    pods = []
    for node in (n for n in nodes if _daemon_runs_on(wanted, n)):
        name = f"{source.name}-{suffix(owner_uid(source.workload), node.metadata.name, length=5)}"
        pod = _pod(source, name, template, labels, source.workload)
        _pin(pod["spec"], node.metadata.name)
        pods.append(pod)
    return Expanded(pods)


def _daemon_runs_on(pod: Pod, node: Node) -> bool:
    labels, name = node.metadata.labels or {}, node.metadata.name
    if pod.spec.node_name not in ("", name) or not selector_from_pairs(pod.spec.node_selector or {}).matches(labels):
        return False
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required: NodeSelector | None = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    if required is not None and not any(term.matches(labels, name) for term in compile_node_selector(required)):
        return False
    taints: Sequence[Taint] = node.spec.taints or ()
    tolerations: Sequence[Toleration] = pod.spec.tolerations or ()
    return first_untolerated(taints, tolerations) is None


def _pin(spec: Manifest, node: str) -> None:
    """Bind the pod to its node by name. Like the controller, replace the terms of the template."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    affinity = spec.get("affinity") or {}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    spec["affinity"] = {**affinity, "nodeAffinity": {**(affinity.get("nodeAffinity") or {}), **required}}


def _job(source: _Source) -> Expanded:
    template = source.template("spec.template")
    if source.get("spec.suspend") is True:
        return Expanded()
    parallelism = source.replicas("spec.parallelism")
    count = min(parallelism, source.replicas("spec.completions", default=parallelism))
    uid = owner_uid(source.workload)
    labels = {
        "batch.kubernetes.io/job-name": source.name,
        "job-name": source.name,
        "batch.kubernetes.io/controller-uid": uid,
        "controller-uid": uid,
    }
    if source.get("spec.completionMode") == "Indexed":
        return Expanded([_indexed(source, template, labels, index) for index in range(count)])
    return Expanded(_replicated(source, count, template, labels))


def _indexed(source: _Source, template: Manifest, labels: Mapping[str, str], index: int) -> Manifest:
    name = f"{source.name}-{index}-{suffix(owner_uid(source.workload), index, length=5)}"
    key = "batch.kubernetes.io/job-completion-index"
    pod = _pod(source, name, template, {**labels, key: str(index)}, source.workload)
    pod["metadata"].setdefault("annotations", {})[key] = str(index)
    return pod


def _cron_job(source: _Source) -> Expanded:
    template = source.get("spec.jobTemplate")
    if not isinstance(template, dict) or not isinstance(template.get("spec"), dict):
        raise bad_field(f"{source.where}: spec.jobTemplate.spec", None, "the spec of a Job")
    source.template("spec.jobTemplate.spec.template")
    labels = source.get("spec.jobTemplate.metadata.labels") or {}
    if not isinstance(labels, dict):
        raise bad_field(f"{source.where}: spec.jobTemplate.metadata.labels", labels, "a mapping of text to text")
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": f"{source.name}-1",
            "namespace": source.namespace,
            "labels": dict(labels),
            "ownerReferences": [_owner_reference(source.workload)],
        },
        "spec": copy.deepcopy(template["spec"]),
    }
    return Expanded(_job(_Source(job, source.where)).pods, [job])


def _volcano_job(source: _Source) -> Expanded:
    tasks = source.get("spec.tasks")
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        raise bad_field(f"{source.where}: spec.tasks", tasks, "a list of tasks")
    made = Expanded([pod for index in range(len(tasks)) for pod in _volcano_task(source, tasks[index], index)])
    least = source.replicas("spec.minAvailable", default=len(made.pods))
    if least > len(made.pods):
        raise bad_field(f"{source.where}: spec.minAvailable", least, f"at most the {len(made.pods)} pods of its tasks")
    if least:
        _group(source, made, least)
    return made


def _group(source: _Source, made: Expanded, least: int) -> None:
    """Return the PodGroup, which places as many of the pods together, or none."""
    whole = source.name if len(source.name) <= _LONGEST_LABEL else f"{source.name[: _LONGEST_LABEL - 9]}-{suffix(source.name, length=8)}"
    metadata: Manifest = {"name": whole, "namespace": source.namespace}
    annotations = source.get("metadata.annotations")
    asked = annotations if isinstance(annotations, dict) else {}
    if topology := {key: str(asked[key]) for key in (TOPOLOGY_KEY, TOPOLOGY_MODE) if key in asked}:
        metadata["annotations"] = topology
    made.others.append({"apiVersion": f"{COSCHEDULING_GROUP}/v1alpha1", "kind": KIND, "metadata": metadata, "spec": {"minMember": least}})
    for pod in made.pods:
        pod["metadata"]["labels"][GROUP_LABEL] = whole


def _volcano_task(source: _Source, task: Manifest, index: int) -> Iterator[Manifest]:
    path = f"spec.tasks[{index}]"
    inner = _Source({**source.workload, "spec": task}, f"{source.where}: {path} as spec")
    template = inner.template("spec.template")
    name = task.get("name") or f"default{index}"
    labels = {"volcano.sh/job-name": source.name, "volcano.sh/task-spec": str(name)}
    for ordinal in range(inner.replicas("spec.replicas")):
        pod = _pod(source, f"{source.name}-{name}-{ordinal}", template, labels, None)
        pod["spec"].setdefault("schedulerName", source.get("spec.schedulerName") or "volcano")
        yield pod
