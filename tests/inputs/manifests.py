"""Manifests as projects publish them, made up, and what is known of them without reading them.

They have the kinds and the oddities of the real ones:

- `bookshop.yaml`: many small services in one file, each with a Service and an account;
- `ledger.yaml`, `quorum.yaml`: StatefulSets with claims and disruption budgets, one budget of a version that is gone; ordinals that would
  rather be apart; a rule that should keep ordinals apart and selects none of them, a mistake that is often made;
- `resolver.yaml`: an addon whose placeholders somebody has to fill in, with roles, configuration, tolerations and a priority;
- `gauge-deployment.yaml`, `gauge-patch.yaml`: a base without a selector, which its kustomization adds, and a patch for it;
- `nightly.yaml`: a namespace with jobs by the clock, of which one is suspended, a Job with indexes and a budget;
- `lookout/`: monitoring, an exporter on every node, and kinds that are not read;
- `examples/`: pods that each show one thing, two of them by the same name: affinity, taints, priority, limits, spread;
- `tasks/`: Volcano Jobs, of one task and of several, in one file and in several.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from . import applications, layouts
from .real import DATA, also_real


@dataclass(frozen=True)
class Application:
    """Files that belong together.

    Attributes:
        files: their paths, or their folder's.
        patched: the second file is a patch of the first, and this is the label that the kustomization gives to all.
    """

    files: Sequence[str]
    patched: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Figures:
    """What is known of a folder, for a cluster of five nodes.

    Attributes:
        problems: where what is wrong with files that are templates, patches, or namesakes.
        owners: by kind of their owner, the pods of all other files.
        gangs, members: Volcano Jobs, and all their pods.
        claims: the claims of StatefulSets.
        not_read: by kind and version, objects that are left out.
    """

    problems: Sequence[str]
    owners: Mapping[str, int]
    pod_groups: int
    members: int
    claims: Sequence[str]
    not_read: Mapping[str, int]


@dataclass(frozen=True)
class Manifests:
    """A folder of manifests.

    Attributes:
        files: by path, their text.
        applications: by name; together they are all the files.
        placeholders: by placeholder, what somebody puts in its place before anybody applies the file.
        gangs: the folder of Volcano Jobs.
        applied: files that an API server takes as they are.
        figures: what is known of them.
    """

    files: Mapping[str, str]
    applications: Mapping[str, Application]
    placeholders: Mapping[str, str]
    pod_groups: str
    applied: Sequence[str]
    figures: Figures

    def of(self, application: str) -> dict[str, str]:
        """By path, the text of an application's files."""
        named = self.applications[application].files
        return {path: self.files[path] for name in named for path in sorted(self.files) if path == name or path.startswith(f"{name}/")}

    def written(self, folder: Path) -> Path:
        """The folder, with all files in it."""
        for path, text in self.files.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return folder


@cache
def made_up() -> Manifests:
    """The folder of this module."""
    replicas = sum(count for count, _ in applications.BOOKSHOP.values())
    jobs = [job for file in applications.TASKS.values() for job in file.values()]
    members = sum(count for _, tasks in jobs for count, _ in tasks.values())
    return Manifests(
        files={
            "bookshop.yaml": layouts.commented(applications.bookshop()),
            "examples/affinity.yaml": layouts.plain([applications.near_one_generation()]),
            "examples/limits.yaml": layouts.commented(applications.limits()),
            "examples/priority.yaml": layouts.compact(applications.priorities()),
            "examples/spread.yaml": layouts.plain([applications.spread()]),
            "examples/taints.yaml": layouts.in_json(applications.taints()),
            "gauge-deployment.yaml": layouts.plain([applications.gauge()]),
            "gauge-patch.yaml": layouts.plain([applications.gauge_apart()]),
            "ledger.yaml": layouts.plain(applications.ledger()),
            "lookout/adapters.yaml": layouts.in_json(applications.lookout()),
            "lookout/exporter.yaml": layouts.plain([applications.exporter()]),
            "lookout/rules.yaml": layouts.compact(applications.not_read()),
            "nightly.yaml": layouts.compact(applications.nightly()),
            "quorum.yaml": layouts.commented(applications.quorum()),
            "resolver.yaml": layouts.plain(applications.resolver()),
            **{f"tasks/{file}": layouts.plain(documents) for file, documents in applications.tasks().items()},
        },
        applications={
            **{name: Application([f"{name}.yaml"]) for name in ("bookshop", "ledger", "nightly", "quorum", "resolver")},
            **{name: Application([name]) for name in ("examples", "lookout", "tasks")},
            "gauge": Application(["gauge-deployment.yaml", "gauge-patch.yaml"], {"app": "gauge"}),
        },
        placeholders={"{{ MEMORY }}": "128Mi", "{{ ADDRESS }}": "10.0.0.53", "{{ DOMAIN }}": "cluster.test"},
        pod_groups="tasks",
        applied=("bookshop.yaml", "gauge-deployment.yaml", "nightly.yaml", "quorum.yaml", "resolver.yaml"),
        figures=Figures(
            problems=(
                "shows): metadata.name",
                "gauge): metadata.name",
                "gauge): spec.selector",
                "resolver): spec.template.spec.containers[0].resources.limits.memory",
            ),
            owners={
                "ReplicaSet": replicas + len(applications.LOOKOUT) + applications.SPREAD,
                "StatefulSet": applications.LEDGERS + applications.QUORUM,
                "DaemonSet": 5,  # an exporter a node
                "Job": applications.REPORTERS + 1,  # and one run of the job by the clock that is not suspended
                "none": members + 7,  # examples, of which a namesake is left out
            },
            pod_groups=len(jobs),
            members=members,
            claims=[f"books-ledger-{n}" for n in range(applications.LEDGERS)] + [f"votes-quorum-{n}" for n in range(applications.QUORUM)],
            not_read={"autoscaling/v2 HorizontalPodAutoscaler": 1, "lookout.test/v1 Rule": 2, "lookout.test/v1 Watchman": 1},
        ),
    )


def real() -> Manifests:
    """The published ones, and what other readers counted in them: 12 services of a shop, 6 of monitoring, 4 replicas of an example, ..."""
    folder = DATA / "manifests"
    alone = {"cockroachdb": "cockroachdb-statefulset.yaml"}
    alone |= {name: f"{name}.yaml" for name in ("coredns", "online-boutique", "zookeeper")}
    return Manifests(
        files={path.relative_to(folder).as_posix(): path.read_text() for path in sorted(folder.rglob("*.yaml"))},
        applications={
            **{name: Application([file]) for name, file in alone.items()},
            **{name: Application([name]) for name in ("kube-prometheus", "kwok-scheduling", "volcano")},
            "metrics-server": Application(
                ["metrics-server-deployment.yaml", "metrics-server-ha-patch.yaml"], {"k8s-app": "metrics-server"}
            ),
        },
        placeholders={"__DNS__MEMORY__LIMIT__": "170Mi", "__DNS__SERVER__": "10.0.0.10", "__DNS__DOMAIN__": "cluster.local"},
        pod_groups="volcano",
        applied=("coredns.yaml", "online-boutique.yaml", "zookeeper.yaml", "metrics-server-deployment.yaml"),
        figures=Figures(
            problems=(
                "pod-1): metadata.name",
                "metrics-server): metadata.name",
                "coredns): spec.template.spec.containers[0].resources.limits.memory",
                "metrics-server): spec.selector",
            ),
            # 3 + 3 ordinals; one exporter a node; 8 examples, of which a namesake is left out, and all members.
            owners={"ReplicaSet": 22, "StatefulSet": 6, "DaemonSet": 5, "none": 41},
            pod_groups=6,
            members=33,
            claims=[f"datadir-cockroachdb-{n}" for n in range(3)] + [f"datadir-zk-{n}" for n in range(3)],
            not_read={"monitoring.coreos.com/v1 Alertmanager": 1, "monitoring.coreos.com/v1 Prometheus": 1},
        ),
    )


MANIFESTS = also_real(made_up, real)
APPLICATIONS = [
    pytest.param(*folder.values, name, id=f"{folder.id}-{name}", marks=folder.marks)
    for folder in MANIFESTS
    for name in folder.values[0]().applications
]
"""Every application of every folder: parameters of a test that takes one at a time."""
