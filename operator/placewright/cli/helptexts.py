"""The text of `--help` for each command: a first sentence, and two examples or more.

All texts stand in one table. A test holds that no command is missing, and that each command accepts its examples. Commands of other
packages bring a table of their own. In an example, the text after ` # ` is a comment.
"""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple


class HelpText(NamedTuple):
    """The texts above and below a command's options."""

    says: str
    examples: tuple[str, ...]


TEXTS: Final[Mapping[str, HelpText]] = {
    "run": HelpText(
        "Run the scheduler, for the cluster of the current kubeconfig context or the one that it runs in.",
        (
            "placewright run # on a laptop: port 10259 serves health, metrics and debug pages",
            "placewright run --config kube-scheduler.yaml --leader-elect=false # profiles of a file, no other replica",
            "placewright run --logging-format json -v 4",
        ),
    ),
    "explain": HelpText(
        "Explain why a pod is on its node, or on none, and which changes would find it a node.",
        (
            "placewright explain web -n shop",
            "placewright explain shop/web -o json",
            "placewright explain shop/web --here # from the API server's objects alone, without an operator",
        ),
    ),
    "convert": HelpText(
        "Translate a KubeSchedulerConfiguration or a legacy Policy into profiles, or profiles back into a configuration.",
        (
            "placewright convert kube-scheduler.yaml > profiles.yaml",
            "placewright convert --to kubeschedulerconfiguration --strict profiles.yaml",
        ),
    ),
    "schema": HelpText(
        "Print the JSON Schema of a plugin's arguments or of a SchedulingProfile; without a name, list the schemas.",
        ("placewright schema NodeResourcesFit", "placewright schema SchedulingProfile > schedulingprofile.schema.json"),
    ),
    "validate": HelpText(
        "Check files of profiles without a cluster. Each problem is printed with its file and line, the value found, and the allowed ones.",
        (
            "placewright validate profiles/ clusters/",
            "kubectl get schedprof -o yaml | placewright validate -",
            "placewright validate -o sarif profiles/",
        ),
    ),
    "profiles": HelpText(
        "List, show, compare and change the profiles of a cluster, and roll changes back.",
        ("placewright profiles list", "placewright profiles set bin-packing NodeResourcesFit=5"),
    ),
    "profiles list": HelpText(
        "List the profiles, the generation of each that is in effect, and how many pods wait that no profile takes.",
        ("placewright profiles list", "placewright profiles list -o wide # with weights, and who changed them last"),
    ),
    "profiles show": HelpText(
        "Show a profile in effect: every plugin, its extension points, its weight and arguments, and the origin of each.",
        ("placewright profiles show bin-packing", "placewright profiles show bin-packing@3 -o yaml", "placewright profiles show new.yaml"),
    ),
    "profiles diff": HelpText(
        "Compare two profiles, files or revisions in effect; the exit code is 1 when they differ.",
        ("placewright profiles diff bin-packing@2 bin-packing", "placewright profiles diff bin-packing new.yaml -o json"),
    ),
    "profiles set": HelpText(
        "Change weights of a profile, and report whether the change took effect.",
        (
            "placewright profiles set bin-packing NodeResourcesFit=5 ImageLocality=0",
            "placewright profiles set bin-packing NodeResourcesFit- --dry-run server # takes the weight back",
        ),
    ),
    "profiles promote": HelpText(
        "Give a live profile the settings of its shadow, and pause the shadow.",
        ("placewright profiles promote packed", "placewright profiles promote packed -o yaml # prints both profiles, for Git"),
    ),
    "profiles who": HelpText(
        "Show which profile a pod gets, and for each other profile why the pod does not get it.",
        ("placewright profiles who web.yaml", "placewright profiles who default/web -o json"),
    ),
    "profiles history": HelpText(
        "List the changes of a profile: the author, the time, the changes in effect, and whether they took effect.",
        ("placewright profiles history bin-packing", "placewright profiles history bin-packing -o json"),
    ),
    "profiles rollback": HelpText(
        "Write an earlier revision of a profile again.",
        ("placewright profiles rollback bin-packing", "placewright profiles rollback bin-packing --to-revision 2 --dry-run server"),
    ),
    "doctor": HelpText(
        "Check an installation, and print what to do about each problem: definitions, operator, image, rights, leader, profiles, clocks, "
        "a second scheduler. It uses your own rights, changes nothing, and ends with exit code 1 when a check failed.",
        ("placewright doctor", "placewright doctor --operator-namespace scheduling -o json"),
    ),
    "version": HelpText(
        "Print the versions of Placewright, Python and Kopf.",
        ("placewright version", "kubectl placewright version # the same, through kubectl"),
    ),
}


class _Formatter(argparse.HelpFormatter):
    """Folds sentences to the width of the terminal, and leaves the lines of examples as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines = (each if each.startswith(" ") else textwrap.fill(each, width) for each in text.splitlines())
        return "\n".join(f"{indent}{line}" for line in lines)


def describe(parser: argparse.ArgumentParser, path: str, texts: Mapping[str, HelpText]) -> None:
    """Give a parser and the parsers of its subcommands their texts.

    Args:
        parser: parser of a command.
        path: words of the command, as in the keys of `texts`.
        texts: texts of all commands.
    """
    text = texts.get(path)
    if text is not None:
        parser.description = text.says.replace("%", "%%")
        parser.epilog = "\n".join(("examples:", *(f"  {each}" for each in text.examples))).replace("%", "%%")
        parser.formatter_class = _Formatter
    for name, each in subcommands(parser):
        describe(each, f"{path} {name}".lstrip(), texts)


def subcommands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """List the subcommands of a parser.

    Yields:
        (name, parser).
    """
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to ask
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            yield from action.choices.items()
