"""What `--help` says of each command beside its options: a first sentence, and two examples or more.

A table, so that the commands are explained in one voice, and so that a test can hold that none is left out and every example is one that
the command takes. Commands of other packages bring a table of their own. In an example, what follows ` # ` is for people.
"""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple


class HelpText(NamedTuple):
    """The words above and below a command's options."""

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
        "Say why a pod of a cluster is on its node, or on none, and what would have to change.",
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


def describe(parser: argparse.ArgumentParser, path: str, texts: Mapping[str, HelpText]) -> None:
    """Give a parser, and those of its subcommands, their words. `path`: the command's words, as the keys of `texts` have them."""
    text = texts.get(path)
    if text is not None:
        parser.description = text.says.replace("%", "%%")
        parser.epilog = "\n".join(("examples:", *(f"  {each}" for each in text.examples))).replace("%", "%%")
        parser.formatter_class = _Formatter
    for name, each in subcommands(parser):
        describe(each, f"{path} {name}".lstrip(), texts)


def subcommands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Names and parsers of a parser's subcommands."""
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to ask
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            yield from action.choices.items()
