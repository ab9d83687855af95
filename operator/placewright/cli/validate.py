"""`placewright validate`: checks profiles for CI, pre-commit and before `kubectl apply`; needs no cluster.

All files together are one set: what shows only between two files is a problem, too. The exit code is 2 for a problem, or if no profile was
found, else 0. Advice, as in the condition of that name, goes to standard error and changes no exit code.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import Any, Final

from placewright.api.bad_input import InputError, printable
from placewright.api.objects import Node
from placewright.api.profile import KIND, SchedulingProfile
from placewright.cli.livecluster import NODES
from placewright.cli.options import Subparsers, add_cluster_options, read_text
from placewright.cli.profiles.connection import ask
from placewright.cli.profiles.namedprofiles import catalogue, profile_of
from placewright.cli.version import installed
from placewright.kube.client import ApiClient
from placewright.kube.listonce import list_once
from placewright.kube.profileadmission import assigns_profiles
from placewright.kube.profileapi import list_profiles
from placewright.kube.reflector import Source
from placewright.profiles.advice import UNKNOWN_SURROUNDINGS, Surroundings
from placewright.profiles.config import CONFIG_KIND
from placewright.profiles.validation import Checked, ValidationFinding, check_files

_SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})
#: Last line about files in which nothing is wrong.
_WITHOUT_CLUSTER: Final = "not checked without --cluster: the profiles, resources and admission of a cluster\n"
_STDIN: Final = "-"


# --- forms of the problems: for people, scripts and code hosts ---------------------------------------------------------------

Format = Callable[[Sequence[ValidationFinding]], str]

_SARIF_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_RULE: Final = "profile"


def as_text(findings: Sequence[ValidationFinding]) -> str:
    """Write a line for each problem: `file:line:column: path: found X; allowed Y`."""
    return "".join(f"{finding}\n" for finding in findings)


def as_json(findings: Sequence[ValidationFinding]) -> str:
    """Write a list of objects."""
    return json.dumps([_fields(finding) for finding in findings], indent=2) + "\n"


def as_github(findings: Sequence[ValidationFinding]) -> str:
    """Write workflow commands of GitHub Actions, which become annotations of a pull request's lines."""
    return "".join(
        f"::error file={_property(finding.file)},line={finding.place.line},col={finding.place.column}"
        f",title=Scheduling profile::{_data(str(finding.problem))}\n"
        for finding in findings
    )


def as_sarif(findings: Sequence[ValidationFinding]) -> str:
    """Write SARIF 2.1.0, the format of code scanning."""
    rule = {"id": _RULE, "shortDescription": {"text": "A scheduling profile that would not come into effect"}}
    driver = {"name": "placewright", "version": installed("placewright"), "rules": [rule]}
    run = {"tool": {"driver": driver}, "results": [_result(finding) for finding in findings]}
    return json.dumps({"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _fields(finding: ValidationFinding) -> dict[str, Any]:
    place = {"file": finding.file, "line": finding.place.line, "column": finding.place.column}
    return place | finding.problem._asdict()


def _result(finding: ValidationFinding) -> dict[str, Any]:
    region = {"startLine": finding.place.line, "startColumn": finding.place.column}
    location = {"artifactLocation": {"uri": PurePath(finding.file).as_posix()}, "region": region}
    message = {"text": str(finding.problem)}
    return {"ruleId": _RULE, "level": "error", "message": message, "locations": [{"physicalLocation": location}]}


def _data(text: str) -> str:
    # The percent sign first: the other escapes contain it.
    return "\n".join(map(printable, text.split("\n"))).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


FORMATS: Final[Mapping[str, Format]] = MappingProxyType({"text": as_text, "json": as_json, "github": as_github, "sarif": as_sarif})


# --- the command ---------------------------------------------------------------------------------------------------------------


def register(subparsers: Subparsers) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("validate", help="check files of profiles, without a cluster")
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="SchedulingProfiles or KubeSchedulerConfigurations, YAML or JSON; a folder stands for all in it, - for standard input",
    )
    parser.add_argument("-o", "--output", choices=sorted(FORMATS), default="text", help="form of the problems (default: %(default)s)")
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing when there is no problem, and no advice")
    parser.add_argument("--cluster", action="store_true", help="check them beside the profiles of the kubeconfig's cluster, too")
    add_cluster_options(parser)
    parser.set_defaults(main=main)


def main(args: argparse.Namespace) -> int:
    """Check all files.

    Returns:
        2 when a file has a problem, else 0.

    Raises:
        InputError: a file cannot be read, no file has a profile, or the cluster does not answer.
    """
    beside, around = ask(args, _cluster) if args.cluster else ([], UNKNOWN_SURROUNDINGS)
    checked = check_files(((text, name) for name, text in _texts(args.files)), catalogue(), beside, around)
    findings = [finding for one in checked for finding in one.findings]
    sys.stdout.write(FORMATS[args.output](findings))
    if not args.quiet:
        sys.stderr.writelines(f"placewright: advice: {advice}\n" for one in checked for advice in one.advice)
    profiles = sum(one.profiles for one in checked)
    if not profiles and not findings and not args.quiet:
        raise InputError(
            f"{', '.join(args.files)}: found no profile in {_counted(len(checked), 'file')}; allowed {KIND}s or {CONFIG_KIND}s"
        )
    if args.output == "text" and not (findings or args.quiet):
        sys.stdout.write(_summary(checked) + ("" if args.cluster else _WITHOUT_CLUSTER))
    return 2 if findings else 0


async def _cluster(client: ApiClient) -> tuple[list[SchedulingProfile], Surroundings]:
    """Read the profiles of a cluster, the resources that its nodes offer, and whether pods are given profiles there."""
    profiles = [profile_of(body) for body in await list_profiles(client)]
    nodes = await list_once(client, Source(NODES, Node))
    resources = {name for node in nodes.items for name in node.status.allocatable or ()}
    return profiles, Surroundings(resources, await assigns_profiles(client))


def _texts(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        if name == _STDIN:
            yield "<stdin>", read_text(name)
        else:
            yield from ((str(path), read_text(str(path))) for path in _files(Path(name)))


def _files(path: Path) -> Sequence[Path]:
    if not path.is_dir():
        return [path]
    return sorted(each for each in path.rglob("*") if each.suffix in _SUFFIXES and each.is_file())


def _summary(checked: Sequence[Checked]) -> str:
    profiles, others = sum(one.profiles for one in checked), sum(one.others for one in checked)
    passed_over = f"; {_counted(others, 'object')} of other kinds passed over" if others else ""
    unreadable = ", ".join(one.unreadable for one in checked if one.unreadable)
    passed_over += f"; passed over, as neither YAML nor JSON: {unreadable}" if unreadable else ""
    return f"{_counted(profiles, 'profile')} in {_counted(len(checked), 'file')}: nothing is wrong{passed_over}\n"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
