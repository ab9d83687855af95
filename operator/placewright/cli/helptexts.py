"""What `--help` says of each command beside its options: a first sentence, and two examples or more.

One table, so that the commands are explained in one voice, and so that a test can hold that none is left out and every example is one that
the command takes. In an example, what follows ` # ` is for people.
"""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

_PROGRAM: Final = "placewright"


class HelpText(NamedTuple):
    """The words above and below a command's options."""

    says: str
    examples: tuple[str, ...]


_CLUSTER: Final = "The cluster comes from -f (manifests or a trace), --snapshot or --record, further pods from --pods"
_CLUSTER_FILES: Final = f"{_CLUSTER}, settings from --profile."

TEXTS: Final[Mapping[str, HelpText]] = {
    "run": HelpText(
        "Run the scheduler, for the cluster of the current kubeconfig context or the one that it runs in.",
        (
            "placewright run # on a laptop: port 10259 serves health, metrics and debug pages",
            "placewright run --config kube-scheduler.yaml --leader-elect=false # profiles of a file, no other replica",
            "placewright run --logging-format json -v 4",
        ),
    ),
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
    "explain": HelpText(
        "Say why a pod of a cluster is on its node, or on none, and what would have to change.",
        (
            "placewright explain web -n shop",
            "placewright explain shop/web -o json",
            "placewright explain shop/web --here # from the API server's objects alone, without an operator",
        ),
    ),
    "simulate": HelpText(
        f"Place pods by the scheduler's own engine in virtual time, without a cluster, and say what comes of it. {_CLUSTER_FILES}",
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
            "placewright diff -f nodes.yaml --pods jobs.yaml base.yaml head.yaml -o markdown --fail-if-pending-grows",
        ),
    ),
    "bench": HelpText(
        "Measure how fast pods are placed on this machine.",
        ("placewright bench decisions --nodes 1000", "placewright bench end-to-end --nodes 1000 --pods 5000"),
    ),
    "bench decisions": HelpText(
        "Measure the scheduling cycle alone, without an API server.",
        ("placewright bench decisions", "placewright bench decisions --workloads plain,openb-mix --nodes 1000,5000 --pods 3000 -o json"),
    ),
    "bench end-to-end": HelpText(
        "Measure pods from created to bound, through a sandbox in another process.",
        ("placewright bench end-to-end", "placewright bench end-to-end --nodes 5000 --pods 2000 --assigned 50000"),
    ),
    "bench reload": HelpText(
        "Measure from the change of a profile to the first pod bound under it, while pods arrive.",
        ("placewright bench reload", "placewright bench reload --nodes 100 --rate 100 --reloads 50 -o json"),
    ),
    "bench records": HelpText(
        "Measure what decision records cost: with and without them, in turns.",
        ("placewright bench records", "placewright bench records --workloads plain --nodes 1000 --slices 40"),
    ),
    "bench shadow": HelpText(
        "Measure what a shadow costs the live profile: with and without one, in turns.",
        ("placewright bench shadow", "placewright bench shadow --workloads plain --nodes 1000 --budget 5"),
    ),
    "bench gangs": HelpText(
        "Measure groups of pods that are placed all or none, without an API server.",
        ("placewright bench gangs", "placewright bench gangs --nodes 500 --groups 100 --members 16"),
    ),
    "bench devices": HelpText(
        "Measure pods with claims to devices, beside pods without.",
        ("placewright bench devices", "placewright bench devices --nodes 500 --pods 1000"),
    ),
    "bench against": HelpText(
        "Measure beside a kube-scheduler, in turns, on one real API server.",
        ("placewright bench against", "placewright bench against --nodes 100,1000 --pods 1000 --waves 4 --kube-scheduler ./kube-scheduler"),
    ),
    "convert": HelpText(
        "Translate a KubeSchedulerConfiguration or a legacy Policy into profiles, or profiles back into a configuration.",
        (
            "placewright convert kube-scheduler.yaml > profiles.yaml",
            "placewright convert --to kubeschedulerconfiguration --strict profiles.yaml",
        ),
    ),
    "schema": HelpText(
        "Print the JSON Schema of a plugin's arguments or of a SchedulingProfile; without a name, list what there is.",
        ("placewright schema NodeResourcesFit", "placewright schema SchedulingProfile > schedulingprofile.schema.json"),
    ),
    "validate": HelpText(
        "Check files of profiles without a cluster; of what is wrong it says the file, the line, what was found and what is allowed.",
        (
            "placewright validate profiles/ clusters/",
            "kubectl get schedprof -o yaml | placewright validate -",
            "placewright validate -o sarif profiles/",
        ),
    ),
    "profiles": HelpText(
        "Look at the profiles of a cluster, compare and change them, and go back.",
        ("placewright profiles list", "placewright profiles set bin-packing NodeResourcesFit=5"),
    ),
    "profiles list": HelpText(
        "List the profiles there are, and which generation of each is in effect; below them, how many pods wait that no profile takes.",
        ("placewright profiles list", "placewright profiles list -o wide # with weights, and who changed them last"),
    ),
    "profiles show": HelpText(
        "Show a profile in effect: every plugin, where it runs, its weight and arguments, and where they came from.",
        ("placewright profiles show bin-packing", "placewright profiles show bin-packing@3 -o yaml", "placewright profiles show new.yaml"),
    ),
    "profiles diff": HelpText(
        "Say how two profiles, files or revisions differ in effect; exit code 1 when they do.",
        ("placewright profiles diff bin-packing@2 bin-packing", "placewright profiles diff bin-packing new.yaml -o json"),
    ),
    "profiles set": HelpText(
        "Change weights of a profile, and see whether it took.",
        (
            "placewright profiles set bin-packing NodeResourcesFit=5 ImageLocality=0",
            "placewright profiles set bin-packing NodeResourcesFit- --dry-run server # takes the weight back",
        ),
    ),
    "profiles promote": HelpText(
        "Give a live profile the settings of its shadow, and pause the shadow.",
        ("placewright profiles promote packed", "placewright profiles promote packed -o yaml # prints both profiles, for Git"),
    ),
    "profiles history": HelpText(
        "Say who changed a profile, when, what that changed in effect, and whether it took.",
        ("placewright profiles history bin-packing", "placewright profiles history bin-packing -o json"),
    ),
    "profiles rollback": HelpText(
        "Go back to an earlier revision of a profile.",
        ("placewright profiles rollback bin-packing", "placewright profiles rollback bin-packing --to-revision 2 --dry-run server"),
    ),
    "doctor": HelpText(
        "Say what is wrong with an installation, and what to do: definitions, operator, image, rights, leader, profiles, clocks, "
        "a second scheduler. It looks with your own rights, changes nothing, and ends with exit code 1 when a check failed.",
        ("placewright doctor", "placewright doctor --operator-namespace scheduling -o json"),
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
    "version": HelpText(
        "Print the versions of Placewright and of what it stands on.",
        ("placewright version", "kubectl placewright version # the same, through kubectl"),
    ),
}


class _Formatter(argparse.HelpFormatter):
    """Folds sentences to the terminal, and leaves the lines of examples as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines = (each if each.startswith(" ") else textwrap.fill(each, width) for each in text.splitlines())
        return "\n".join(f"{indent}{line}" for line in lines)


def describe(parser: argparse.ArgumentParser, path: str = "") -> None:
    """Give a parser, and those of its subcommands, their words."""
    text = TEXTS.get(path)
    if text is not None:
        parser.description = text.says.replace("%", "%%")
        parser.epilog = "\n".join(("examples:", *(f"  {each}" for each in text.examples))).replace("%", "%%")
        parser.formatter_class = _Formatter
    for name, each in subcommands(parser):
        describe(each, f"{path} {name}".lstrip())


def subcommands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Names and parsers of a parser's subcommands."""
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to ask
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            yield from action.choices.items()


def words_of(example: str) -> list[str]:
    """What an example gives to `placewright`, word by word."""
    import shlex  # noqa: PLC0415 - for those alone who try examples

    command = next(part for part in example.partition(" # ")[0].split("|") if _PROGRAM in part)
    words = shlex.split(command.partition(">")[0])
    return words[words.index(_PROGRAM) + 1 :]
