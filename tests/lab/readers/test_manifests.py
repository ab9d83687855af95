"""Manifests to objects and pods: workloads as their controllers would expand them, and one line for each that is wrong."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from inputs.manifests import MANIFESTS, Manifests
from placewright.api.bad_input import InputError
from placewright_lab.bench.madeup import mixed_nodes
from placewright_lab.readers.expansion import owner_uid
from placewright_lab.readers.inputs import Inputs, load_inputs, load_objects
from placewright_lab.readers.manifests import Reading, SourceText, read_manifests

TEMPLATE = """
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 100m}}}]}
"""


def read(text: str, nodes: list[dict[str, Any]] | None = None) -> Reading:
    return read_manifests([SourceText("f.yaml", text)], nodes or [])


def workload(kind: str, spec: str = "", api_version: str = "apps/v1") -> str:
    selector = "  selector: {matchLabels: {app: web}}\n" if api_version == "apps/v1" else ""
    meta = "metadata: {name: web, namespace: shop}"
    return f"apiVersion: {api_version}\nkind: {kind}\n{meta}\nspec:\n{selector}{spec}{TEMPLATE}"


def node_text(name: str, labels: str = "{}", taints: str = "[]") -> str:
    return f"---\napiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {labels}}}\nspec: {{taints: {taints}}}\n"


def names(pods: list[dict[str, Any]]) -> list[str]:
    return [pod["metadata"]["name"] for pod in pods]


def kinds(reading: Reading) -> list[str]:
    return [manifest["kind"] for manifest in reading.objects]


def test_a_deployment_becomes_a_replica_set_and_its_pods_with_labels_and_owners_as_the_controllers_set_them() -> None:
    reading = read(workload("Deployment", "  replicas: 3"))
    assert kinds(reading) == ["Namespace", "Deployment", "ReplicaSet"]
    deployment, replica_set = reading.objects[1:]
    code = replica_set["metadata"]["labels"]["pod-template-hash"]
    assert replica_set["metadata"]["name"] == f"web-{code}"
    assert replica_set["metadata"]["ownerReferences"][0]["uid"] == owner_uid(deployment)
    assert replica_set["spec"]["selector"]["matchLabels"] == {"app": "web", "pod-template-hash": code}
    assert len({*names(reading.pods)}) == 3
    for pod in reading.pods:
        assert pod["metadata"]["name"].startswith(f"web-{code}-")
        assert pod["metadata"]["namespace"] == "shop"
        assert pod["metadata"]["labels"] == {"app": "web", "pod-template-hash": code}
        owner = pod["metadata"]["ownerReferences"][0]
        assert (owner["kind"], owner["uid"], owner["controller"]) == ("ReplicaSet", owner_uid(replica_set), True)


def test_names_follow_from_the_manifest_alone() -> None:
    first, second = read(workload("Deployment", "  replicas: 2")), read(workload("Deployment", "  replicas: 2"))
    assert first.pods == second.pods
    assert names(read(workload("Deployment", "  replicas: 3")).pods)[:2] == names(first.pods)


def test_a_deployment_without_replicas_has_one_and_with_zero_none() -> None:
    assert len(read(workload("Deployment")).pods) == 1
    assert read(workload("Deployment", "  replicas: 0")).pods == []


def test_a_stateful_set_has_ordinals_labels_and_a_claim_a_pod() -> None:
    claims = "  volumeClaimTemplates:\n  - metadata: {name: data}\n    spec: {accessModes: [ReadWriteOnce]}\n"
    reading = read(workload("StatefulSet", f"  replicas: 2\n{claims}"))
    assert names(reading.pods) == ["web-0", "web-1"]
    assert kinds(reading) == ["Namespace", "PersistentVolumeClaim", "PersistentVolumeClaim", "StatefulSet"]
    assert names(reading.objects[1:3]) == ["data-web-0", "data-web-1"]
    pod = reading.pods[1]
    assert pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] == "web-1"
    assert pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "1"
    assert pod["spec"]["volumes"] == [{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-1"}}]


def test_a_daemon_set_has_a_pod_on_each_node_that_its_selector_and_tolerations_allow() -> None:
    nodes = (
        node_text("plain", "{os: linux}")
        + node_text("tainted", "{os: linux}", "[{key: k, effect: NoSchedule}]")
        + node_text("soft", "{os: linux}", "[{key: k, effect: PreferNoSchedule}]")
        + node_text("cordoned", "{os: linux}", "[{key: node.kubernetes.io/unschedulable, effect: NoSchedule}]")
        + node_text("other", "{os: windows}")
    )
    template = TEMPLATE.replace("spec: {", "spec: {nodeSelector: {os: linux}, ")
    text = workload("DaemonSet").replace(TEMPLATE, template)
    reading = read(text + nodes)
    pinned = [
        pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        for pod in reading.pods
    ]
    found = [terms[0]["matchFields"][0]["values"] for terms in pinned]
    assert found == [["plain"], ["soft"], ["cordoned"]]


def test_a_daemon_set_without_nodes_has_no_pods() -> None:
    assert read(workload("DaemonSet")).pods == []


@pytest.mark.parametrize(
    ("spec", "count"),
    [
        ("", 1),
        ("  parallelism: 3", 3),
        ("  parallelism: 3\n  completions: 2", 2),
        ("  completions: 5", 1),
        ("  parallelism: 2\n  suspend: true", 0),
    ],
)
def test_a_job_makes_its_first_wave(spec: str, count: int) -> None:
    reading = read(workload("Job", spec, "batch/v1"))
    assert len(reading.pods) == count
    assert all(pod["metadata"]["labels"]["job-name"] == "web" for pod in reading.pods)
    assert bool(reading.notes) == (spec == "  completions: 5")


def test_an_indexed_job_numbers_its_pods() -> None:
    text = workload("Job", "  parallelism: 2\n  completions: 2\n  completionMode: Indexed", "batch/v1")
    key = "batch.kubernetes.io/job-completion-index"
    assert [p["metadata"]["annotations"][key] for p in read(text).pods] == ["0", "1"]


def test_a_cron_job_makes_one_run() -> None:
    job = "\n".join(f"    {line}" for line in f"  parallelism: 2{TEMPLATE}".splitlines())
    text = "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: nightly}\nspec:\n  jobTemplate:\n    spec:\n" + job
    reading = read(text)
    assert kinds(reading) == ["CronJob", "Job"]
    assert {pod["metadata"]["ownerReferences"][0]["kind"] for pod in reading.pods} == {"Job"}
    assert len(reading.pods) == 2


def volcano_job(name: str = "j", least: str = "", annotations: str = "") -> str:
    task = "{name: t, replicas: 2, template: {spec: {containers: [{name: c, image: i}]}}}"
    meta = f"{{name: {name}, annotations: {{{annotations}}}}}"
    return f"apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {meta}\nspec: {{{least} tasks: [{task}]}}\n"


def test_a_volcano_job_becomes_the_pods_of_its_tasks_for_its_own_scheduler_and_a_group_of_all_of_them() -> None:
    reading = read(volcano_job())
    assert names(reading.pods) == ["j-t-0", "j-t-1"]
    assert {pod["spec"]["schedulerName"] for pod in reading.pods} == {"volcano"}
    (group,) = reading.objects
    assert (group["kind"], group["apiVersion"], group["metadata"]["name"]) == ("PodGroup", "scheduling.x-k8s.io/v1alpha1", "j")
    assert group["spec"] == {"minMember": 2}
    assert {pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] for pod in reading.pods} == {"j"}
    assert "each a PodGroup with its minAvailable; the Jobs are left out" in reading.notes[0]


def test_a_volcano_jobs_min_available_and_topology_are_its_groups() -> None:
    key = "placewright.dev/topology-key: rack, volcano.sh/other: x"
    (group,) = read(volcano_job(least="minAvailable: 1,", annotations=key)).objects
    assert (group["spec"], group["metadata"]["annotations"]) == ({"minMember": 1}, {"placewright.dev/topology-key": "rack"})


def test_a_volcano_job_that_needs_none_of_its_pods_is_no_group_and_one_that_needs_more_than_it_has_is_refused() -> None:
    assert read(volcano_job(least="minAvailable: 0,")).objects == []
    wrong = read(volcano_job(least="minAvailable: 3,"))
    assert wrong.pods == [] and "spec.minAvailable: found 3; allowed at most the 2 pods of its tasks" in wrong.problems[0]


def test_a_volcano_job_with_a_long_name_has_a_group_whose_name_fits_a_label() -> None:
    reading = read(volcano_job("j" * 100))
    (group,) = reading.objects
    assert len(group["metadata"]["name"]) == 63
    assert {pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] for pod in reading.pods} == {group["metadata"]["name"]}


def test_other_kinds_pass_through_in_an_order_that_a_cluster_accepts() -> None:
    text = """
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c}]}}
- {apiVersion: v1, kind: Service, metadata: {name: s}}
- {apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: fast}}
- {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 5}
- {apiVersion: policy/v1beta1, kind: PodDisruptionBudget, metadata: {name: b}}
- {apiVersion: v1, kind: Namespace, metadata: {name: n}}
---
apiVersion: v1
kind: PodList
items: [{metadata: {generateName: made-}, spec: {containers: [{name: c}]}}]
"""
    reading = read(text)
    assert kinds(reading) == ["Namespace", "PriorityClass", "StorageClass", "Service", "PodDisruptionBudget"]
    assert reading.objects[-1]["apiVersion"] == "policy/v1"
    assert names(reading.pods)[0] == "p"
    assert names(reading.pods)[1].startswith("made-")


def test_unknown_kinds_are_left_out_and_said_once_a_kind() -> None:
    one = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: %s}\n"
    reading = read(f"{one % 'a'}---\n{one % 'b'}")
    assert (reading.objects, reading.notes) == ([], ["example.com/v1 Widget: 2 left out, this kind is not read"])


def test_an_exact_repetition_is_silent_and_a_different_object_of_the_same_name_is_a_problem() -> None:
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: %s}]}\n"
    assert read(f"{pod % 'i'}---\n{pod % 'i'}").problems == []
    reading = read(f"{pod % 'i'}---\n{pod % 'j'}")
    assert len(reading.pods) == 1
    assert reading.problems == [
        "f.yaml: document 2 (Pod/p): metadata.name: found 'default/p'; "
        "allowed a name used once; it stands in f.yaml: document 1 (Pod/p) too"
    ]


POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c}]}\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- a\n- b\n", ": found 'list'; allowed a Kubernetes object"),
        ("kind: Pod\n", " (Pod/?): apiVersion: found nothing; allowed text such as apps/v1"),
        ("apiVersion: v1\nkind: [Pod]\n", " (['Pod']/?): kind: found ['Pod']; allowed text"),
        (POD.replace("{name: p}", "5"), " (Pod/?): metadata: found 5; allowed a mapping"),
        (POD.replace("name: p", "name: P_1"), " (Pod/P_1): metadata.name: found 'P_1'; allowed lower"),
        (POD.replace("name: p", "name: p, namespace: a.b"), " (Pod/p): metadata.namespace: found 'a.b'"),
        (POD.replace("[{name: c}]", "[]"), " (Pod/p): spec.containers: found []; allowed a list of at"),
        (POD.replace("{name: c}", "{name: 5}"), " (Pod/p): spec.containers[0].name: found 5; allowed text"),
        (
            POD.replace("name: p", "name: p, labels: {a: 1}"),
            " (Pod/p): metadata.labels[...]: found a whole number; allowed text",
        ),
        (
            POD.replace("name: p", "name: p, labels: {a: b/c}"),
            " (Pod/p): metadata.labels['a']: found 'b/c'; allowed at most 63",
        ),
        (
            POD.replace("name: c", "name: c, resources: {limits: {cpu: 1x}}"),
            " (Pod/p): spec.containers[0].resources.limits.cpu: found '1x'; allowed a quantity of at least 0",
        ),
        (
            POD.replace("name: c", "name: c, resources: {requests: {cpu: -1}}"),
            " (Pod/p): spec.containers[0].resources.requests.cpu: found -1; allowed a quantity of at least 0",
        ),
        (
            workload("Deployment", "  replicas: -1"),
            " (Deployment/web): spec.replicas: found -1; allowed a whole number from 0 to 200000",
        ),
        (
            workload("Deployment", "  replicas: 2000000000"),
            " (Deployment/web): spec.replicas: found 2000000000; allowed a whole number",
        ),
        (
            workload("Deployment", "  replicas: '3'"),
            " (Deployment/web): spec.replicas: found '3'; allowed a whole number",
        ),
        (
            workload("Deployment").replace("matchLabels: {app: web}", "matchLabels: {app: x}"),
            " (Deployment/web): spec.selector: found",
        ),
        (
            workload("Deployment").replace("  selector: {matchLabels: {app: web}}\n", ""),
            " (Deployment/web): spec.selector: found nothing",
        ),
        (
            workload("Deployment").replace("name: c,", "name: [c],"),
            " (Deployment/web): spec.template.spec.containers[0].name: found ['c']; allowed text",
        ),
        (
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: 5\n",
            " (Deployment/d): spec: found 5; allowed a mapping",
        ),
        (
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n",
            " (Deployment/d): spec.template: found nothing; allowed a pod template",
        ),
        (
            "apiVersion: v1\nkind: Node\nmetadata: {name: n}\nstatus: {allocatable: {cpu: lots}}\n",
            " (Node/n): status.allocatable.cpu: found 'lots'",
        ),
    ],
)
def test_a_wrong_document_is_one_line_with_file_document_field_found_and_allowed(text: str, problem: str) -> None:
    reading = read(text)
    assert reading.problems[0].startswith(f"f.yaml: document 1{problem}")
    assert "\n" not in reading.problems[0]
    with pytest.raises(InputError):
        reading.raise_first()


def test_names_with_control_characters_are_never_shown_as_they_are() -> None:
    reading = read('apiVersion: v1\nkind: "\\e[2J"\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: "\\e[2J"}\n')
    lines = (*reading.problems, *reading.notes)
    assert len(lines) == 2
    assert all(line.isprintable() for line in lines)


def test_one_wrong_document_does_not_hide_the_others() -> None:
    reading = read(f"{POD.replace('name: p', 'name: P')}---\n{POD}---\n- x\n")
    assert names(reading.pods) == ["p"]
    with pytest.raises(InputError, match=r"\(and 1 more like this\)"):
        reading.raise_first()


def test_daemon_sets_count_the_stand_in_nodes_when_no_file_has_any(tmp_path: Path) -> None:
    file = tmp_path / "ds.yaml"
    file.write_text(workload("DaemonSet"))
    assert len(load_inputs(pods=[file], default_nodes=mixed_nodes(4)).pods) == 4


def test_a_folder_is_read_whole_and_a_trace_may_stand_for_the_nodes(tmp_path: Path) -> None:
    nodes = tmp_path / "nodes.csv"
    nodes.write_text("sn,cpu_milli,memory_mib,gpu,model\nn-1,1000,1000,0,\n")
    folder = tmp_path / "manifests"
    (folder / "deeper").mkdir(parents=True)
    (folder / "a.yaml").write_text(POD)
    (folder / "deeper" / "b.yml").write_text(POD.replace("name: p", "name: q"))
    (folder / "notes.txt").write_text("not: [a manifest")
    found = load_inputs([nodes], [folder])
    assert (names(found.nodes), names(found.pods)) == (["n-1"], ["p", "q"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "found 'an empty file'; allowed a trace in the openb format, or Kubernetes manifests"),
        (b"  \n\n", "found 'an empty file'"),
        (b"a: b\nc: \xff\n", "line 2: found 'the byte 0xff'; allowed text in UTF-8"),
        (b"\x7fELF\x00\x00", "not YAML"),
    ],
)
def test_files_that_are_no_text_are_refused_by_name(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "x.yaml"
    file.write_bytes(content)
    with pytest.raises(InputError) as refused:
        load_objects([file])
    assert str(refused.value).startswith(str(file))
    assert message in str(refused.value)


def test_missing_files_and_empty_folders_are_refused_by_name(tmp_path: Path) -> None:
    for path, message in ((tmp_path, "a folder without manifests"), (tmp_path / "nope", "No such file or directory")):
        with pytest.raises(InputError, match=message):
            load_objects([path])


@pytest.fixture(scope="module", params=MANIFESTS)
def published(request: pytest.FixtureRequest) -> Manifests:
    made: Manifests = request.param()
    return made


@pytest.fixture(scope="module")
def folder(published: Manifests, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return published.written(tmp_path_factory.mktemp("published"))


@pytest.fixture(scope="module")
def found(folder: Path) -> Inputs:
    return load_inputs(pods=[folder], default_nodes=mixed_nodes(5), skip_bad=True)


def test_a_published_folder_is_refused_for_its_mistakes_and_read_without_them(published: Manifests, folder: Path, found: Inputs) -> None:
    with pytest.raises(InputError, match=rf"and {len(published.figures.problems) - 1} more like this"):
        load_inputs(pods=[folder], default_nodes=mixed_nodes(5))
    problems = [problem.partition(": found")[0].rpartition("/")[2] for problem in found.problems]
    assert problems == list(published.figures.problems)


def test_a_published_folder_is_expanded_as_its_controllers_would(published: Manifests, found: Inputs) -> None:
    figures = published.figures
    owners = Counter((pod["metadata"].get("ownerReferences") or [{"kind": "none"}])[0]["kind"] for pod in found.pods)
    assert owners == figures.owners
    assert Counter(pod["spec"].get("schedulerName") for pod in found.pods)["volcano"] == figures.members
    claims = [o["metadata"]["name"] for o in found.others if o["kind"] == "PersistentVolumeClaim"]
    assert claims == list(figures.claims)
    left_out = [f"{kind}: {count} left out, this kind is not read" for kind, count in figures.not_read.items()]
    assert [note for note in found.notes if note.endswith("not read")] == left_out
