"""Reads Kubernetes manifests in YAML or JSON into checked objects, with workloads expanded to their pods.

Every wrong document is one problem: a line that names file, document, kind, name and field. The caller decides whether one problem spoils
all (`Reading.raise_first`) or is left out. Of each unknown kind, a note tells that it is left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from placewright.api.bad_input import InputError, bad_field, shown
from placewright.api.decode import convert
from placewright.api.objects import Node
from placewright.api.yamldocs import read_documents
from placewright.offline.kinds import VOLCANO_JOB, Manifest, create_rank, find_kind, kind_and_group
from placewright_lab.readers.expansion import MOST_PODS, Expanded, expand, suffix
from placewright_lab.readers.podcheck import check_node, check_pod

_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_RBAC_NAME: Final = re.compile(r"[^/%]+")
_WORKLOADS: Final = frozenset({"Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Job", "CronJob"})
_READY_MADE_NAMESPACES: Final = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})


class SourceText(NamedTuple):
    """The name of a file for messages, and its text."""

    name: str
    text: str


class Item(NamedTuple):
    """One object of a file and its place: `file: document N (Kind/name)`."""

    manifest: Manifest
    where: str


class Reading:
    """The result of reading manifests.

    Attributes:
        objects: everything except pods, in create order: nodes, workloads, and all other known kinds.
        pods: plain pods and the pods of workloads, in the order of the files.
        problems: line for each wrong document that was left out.
        notes: remarks for people about kinds that are left out or only partly modelled.
    """

    def __init__(self) -> None:
        self.objects: list[Manifest] = []
        self.pods: list[Manifest] = []
        self.problems: list[str] = []
        self.notes: list[str] = []

    def raise_first(self) -> None:
        """Raise `InputError` for the first problem, if there is one, with the number of the others."""
        if self.problems:
            more = len(self.problems) - 1
            raise InputError(self.problems[0] + (f" (and {more} more like this)" if more else ""))

    @property
    def nodes(self) -> list[Manifest]:
        """The nodes among the objects."""
        return [o for o in self.objects if o["kind"] == "Node"]


def read_manifests(sources: Sequence[SourceText], nodes: Sequence[Manifest] = ()) -> Reading:
    """Read files in order. DaemonSets get a pod on each matching one of `nodes` and of the nodes in the files themselves."""
    reading = Reading()
    reader = _Reader(reading)
    for source in sources:
        try:
            for item in _items(source):
                reader.take(item)
        except InputError as error:
            reading.problems.append(str(error))
    reader.finish(nodes)
    return reading


def _items(source: SourceText) -> Iterator[Item]:
    for document in read_documents(source.text, source.name):
        where = f"{source.name}: document {document.number}"
        yield from _flatten(document.value, where)


def _flatten(value: object, where: str) -> Iterator[Item]:
    if not isinstance(value, dict):
        raise bad_field(f"{where}", type(value).__name__, "a Kubernetes object: a mapping with apiVersion, kind and metadata")
    kind = value.get("kind")
    if isinstance(kind, str) and kind.endswith("List") and isinstance(value.get("items"), list):
        # The items of a typed list (PodList) need no kind of their own.
        known = {} if kind == "List" else {"apiVersion": value.get("apiVersion"), "kind": kind.removesuffix("List")}
        for number, item in enumerate(value["items"], 1):
            yield from _flatten({**known, **item} if isinstance(item, dict) else item, f"{where}, item {number}")
        return
    meta = value.get("metadata")
    name = meta.get("name", meta.get("generateName")) if isinstance(meta, dict) else None
    yield Item(value, f"{where} ({_short(kind)}/{_short(name)})")


def _short(value: object) -> str:
    return value if isinstance(value, str) and len(value) <= 63 and value.isprintable() else "?" if value is None else shown(value)


class _Reader:
    """Sorts items into a reading. Workloads wait until all nodes are known."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._workloads: list[Item] = []
        self._seen: dict[tuple[str, str, str], Item] = {}
        self._left_out: Counter[str] = Counter()
        self._partly: Counter[str] = Counter()
        self._generated = 0

    def take(self, item: Item) -> None:
        """Check one object and keep it, or keep its problem."""
        try:
            self._take(item)
        except InputError as error:
            self._reading.problems.append(str(error))

    def finish(self, nodes: Sequence[Manifest]) -> None:
        """Expand the workloads, put everything in create order, and add the namespaces that no file declares."""
        known = [convert(node, Node) for node in (*nodes, *self._reading.nodes)]
        for item in self._workloads:
            try:
                self._add(item.manifest, expand(item.manifest, item.where, known))
            except InputError as error:
                self._reading.problems.append(str(error))
        self._reading.objects += self._missing_namespaces()
        self._reading.objects.sort(key=create_rank)
        notes = self._reading.notes
        notes += [f"{kind}: {count} left out, this kind is not read" for kind, count in sorted(self._left_out.items())]
        if jobs := self._partly["volcano"]:
            into = "the pods of their tasks, each a PodGroup with its minAvailable"
            notes.append(f"Volcano Job: {jobs} expanded to {into}; the Jobs are left out")
        if jobs := self._partly["waves"]:
            notes.append(f"Job: {jobs} with more completions than parallelism; only the first wave of pods is made")

    def _take(self, item: Item) -> None:
        manifest = self._normalised(item)
        if manifest is None:
            return
        item = Item(manifest, item.where)
        if not self._is_new(item):
            return
        if manifest["kind"] in _WORKLOADS:
            self._workloads.append(item)
            self._count_partly(manifest)
        elif manifest["kind"] == "Pod":
            check_pod(manifest, item.where)
            self._reading.pods.append(manifest)
        else:
            if manifest["kind"] == "Node":
                check_node(manifest, item.where)
            self._reading.objects.append(manifest)

    def _normalised(self, item: Item) -> Manifest | None:
        """Return the object under its current apiVersion, with name and namespace, or None for an unknown kind."""
        body, where = item
        api_version, name = body.get("apiVersion"), body.get("kind")
        for field, value in (("apiVersion", api_version), ("kind", name)):
            if not isinstance(value, str) or not value:
                raise bad_field(f"{where}: {field}", value, "text such as apps/v1 or Deployment")
        assert isinstance(api_version, str) and isinstance(name, str)
        volcano = api_version.startswith(f"{VOLCANO_JOB}/") and name == "Job"
        kind = find_kind(api_version, name)
        if kind is None and not volcano:
            self._left_out[f"{_short(api_version)} {_short(name)}"] += 1
            return None
        metadata = self._metadata(body, where, namespaced=kind is None or kind.namespaced, strict=not _is_rbac(api_version))
        return {**body, "apiVersion": kind.api_version if kind else api_version, "metadata": metadata}

    def _metadata(self, body: Manifest, where: str, *, namespaced: bool, strict: bool) -> Manifest:
        metadata = body.get("metadata")
        if not isinstance(metadata, dict):
            raise bad_field(f"{where}: metadata", metadata, "a mapping with a name")
        name = metadata.get("name") or self._generated_name(metadata)
        pattern = _SUBDOMAIN if strict else _RBAC_NAME
        if not isinstance(name, str) or len(name) > 253 or not pattern.fullmatch(name):
            raise bad_field(f"{where}: metadata.name", name, "lower-case letters, digits, '-' and '.', at most 253")
        namespace = metadata.get("namespace") or "default"
        if not isinstance(namespace, str) or not _LABEL.fullmatch(namespace):
            raise bad_field(f"{where}: metadata.namespace", namespace, "lower-case letters, digits and '-', at most 63")
        kept = {k: v for k, v in metadata.items() if k not in ("uid", "resourceVersion", "namespace", "generateName")}
        return {**kept, "name": name, **({"namespace": namespace} if namespaced else {})}

    def _generated_name(self, metadata: Manifest) -> str | None:
        prefix = metadata.get("generateName")
        if not isinstance(prefix, str) or not prefix:
            return None
        self._generated += 1
        return prefix + suffix(prefix, self._generated, length=5)

    def _is_new(self, item: Item) -> bool:
        """Return False for an exact repetition. Raises `InputError` for another object of the same name."""
        meta = item.manifest["metadata"]
        earlier = self._seen.setdefault((kind_and_group(item.manifest), meta.get("namespace", ""), meta["name"]), item)
        if earlier is item:
            return True
        if earlier.manifest == item.manifest:
            return False
        place = f"{meta['namespace']}/{meta['name']}" if "namespace" in meta else meta["name"]
        raise bad_field(f"{item.where}: metadata.name", place, f"a name used once; it stands in {earlier.where} too")

    def _count_partly(self, manifest: Manifest) -> None:
        spec = manifest.get("spec")
        if manifest["apiVersion"].startswith(VOLCANO_JOB):
            self._partly["volcano"] += 1
        elif manifest["kind"] == "Job" and isinstance(spec, dict):
            completions, parallelism = spec.get("completions"), spec.get("parallelism") or 1
            self._partly["waves"] += isinstance(completions, int) and isinstance(parallelism, int) and completions > parallelism

    def _add(self, workload: Manifest, made: Expanded) -> None:
        if len(self._reading.pods) + len(made.pods) > MOST_PODS:
            raise bad_field(f"{workload['kind']}/{workload['metadata']['name']}", "more pods in all", f"at most {MOST_PODS}")
        if not workload["apiVersion"].startswith(VOLCANO_JOB):
            self._reading.objects.append(workload)
        self._reading.objects += made.others
        self._reading.pods += made.pods

    def _missing_namespaces(self) -> list[Manifest]:
        objects = (*self._reading.objects, *self._reading.pods)
        declared = {o["metadata"]["name"] for o in self._reading.objects if o["kind"] == "Namespace"}
        used = {o["metadata"]["namespace"] for o in objects if "namespace" in o["metadata"]}
        missing = sorted(used - declared - _READY_MADE_NAMESPACES)
        return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in missing]


def _is_rbac(api_version: str) -> bool:
    return api_version.startswith("rbac.authorization.k8s.io/")
