"""The texts of `--help` for each of the lab's commands. `placewright.cli.helptexts` describes their form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from placewright.cli.helptexts import HelpText

_CLUSTER: Final = "The cluster comes from -f (manifests or a trace), --snapshot or --record, further pods from --pods"
_CLUSTER_FILES: Final = f"{_CLUSTER}, settings from --profile."

TEXTS: Final[Mapping[str, HelpText]] = {
    "sandbox": HelpText(
        "Run an embedded Kubernetes API server for kubectl and for experiments, until Ctrl-C; it writes a kubeconfig.",
        (
            "placewright sandbox --nodes 100 --kubeconfig sandbox.kubeconfig",
            "placewright sandbox --nodes 4 --devices 8 # eight simulated GPUs on each node",
            "placewright sandbox --real # a real kube-apiserver and etcd",
        ),
    ),
    "demo": HelpText(
        "Show the scheduler at work on an embedded cluster: pods arrive, a profile is changed half-way, and what that changed is told.",
        (
            "placewright demo",
            "placewright demo --console --open # in the browser, until Ctrl-C",
            "placewright demo --keep # leaves the cluster up, with things to try",
            "placewright demo --nodes nodes.yaml --pods manifests/ # your own",
        ),
    ),
    "evaluate": HelpText(
        "Say what would be done with one pod, and why, node by node and plugin by plugin, without a cluster. "
        "For pods of a cluster that runs there is `placewright explain`; for many pods at once, `placewright simulate`.",
        (
            "placewright evaluate -f web.yaml # the only pod in it that has no node",
            "placewright evaluate -f nodes.yaml -f web.yaml --pod default/web --profile bin-packing.yaml -o json",
        ),
    ),
    "simulate": HelpText(
        f"Place pods by the scheduler's own engine in virtual time, without a cluster, and tell the outcome. {_CLUSTER_FILES}",
        (
            "placewright simulate --snapshot acme.snapshot.gz --profile bin-packing.yaml # its pending pods",
            "placewright simulate -f nodes.yaml --pods jobs.yaml --profile one.yaml --profile two.yaml",
            "placewright simulate --record acme.recording.gz -o json",
        ),
    ),
    "compare": HelpText(
        f"Place the same pods under several profiles, side by side, and say what differs. {_CLUSTER_FILES}",
        (
            "placewright compare --snapshot acme.snapshot.gz --all-pods --profile now.yaml --profile new.yaml",
            "placewright compare -f nodes.yaml --pods jobs.yaml --profile now.yaml --profile new.yaml --seeds 5 --report report.html",
        ),
    ),
    "tune": HelpText(
        f"Search for weights under which the same pods are placed better, by simulating them again and again. {_CLUSTER_FILES}",
        (
            "placewright tune --snapshot acme.snapshot.gz --all-pods --objective pending,empty-nodes --vary NodeResourcesFit=0..10",
            "placewright tune -f nodes.yaml --pods jobs.yaml --objective cpu-std --vary ImageLocality=0..5 --write best.yaml",
        ),
    ),
    "diff": HelpText(
        f"Say what a change of profiles would do to a cluster, for a pull request. {_CLUSTER}, settings from BEFORE and AFTER.",
        (
            "placewright diff --snapshot acme.snapshot.gz base.yaml head.yaml",
            "placewright diff --snapshot acme.snapshot.gz --compatibility 1.36..1.38 base.yaml",
            "placewright diff -f nodes.yaml --pods jobs.yaml base.yaml head.yaml -o markdown --fail-if-pending-grows",
        ),
    ),
    "bench": HelpText(
        "Measure how fast pods are placed on this machine.",
        ("placewright bench decisions --nodes 1000", "placewright bench end-to-end --nodes 1000 --pods 5000"),
    ),
    "bench decisions": HelpText(
        "Measure the scheduling cycle alone, without an API server.",
        (
            "placewright bench decisions",
            "placewright bench decisions --workloads plain,openb-mix --nodes 1000,5000 --pods 3000 -o json",
            "placewright bench decisions --workloads deployments-soft --deployments 20,200,1000,3000",
        ),
    ),
    "bench end-to-end": HelpText(
        "Measure pods from created to bound, through a sandbox in another process.",
        ("placewright bench end-to-end", "placewright bench end-to-end --nodes 5000 --pods 2000 --assigned 50000"),
    ),
    "bench against": HelpText(
        "Measure beside a kube-scheduler, in turns, on one real API server.",
        ("placewright bench against", "placewright bench against --nodes 100,1000 --pods 1000 --waves 4 --kube-scheduler ./kube-scheduler"),
    ),
    "bench scheduler-perf": HelpText(
        "Run the workloads of Kubernetes' own scheduler_perf beside a kube-scheduler, each turn on a real API server of its own.",
        (
            "placewright bench scheduler-perf kubernetes/test/integration/scheduler_perf --workloads 500Nodes",
            "placewright bench scheduler-perf config --workloads 'SchedulingBasic/500Nodes$' --turns 3 -o json",
            "placewright bench scheduler-perf config --save figures.jsonl --page docs/scheduler-perf-reference.md",
        ),
    ),
    "snapshot": HelpText(
        "Save what the scheduler sees of a cluster into a file, for simulate, compare, tune and diff.",
        (
            "placewright snapshot --write acme.snapshot.gz",
            "placewright snapshot --anonymise --write shared.snapshot.gz # made-up names, to give away",
            "placewright snapshot --show acme.snapshot.gz",
        ),
    ),
    "record": HelpText(
        "Follow what the scheduler sees of a cluster into a file, for simulate, compare, tune and diff; pods come again when they came.",
        ("placewright record --write acme.recording.gz --for 1h", "placewright record --show acme.recording.gz"),
    ),
}
