"""`placewright profiles who`: which profile a pod gets, and why each other profile does not."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from placewright.api.bad_input import InputError, bad_field, in_json, printable
from placewright.api.decode import DecodeError, convert
from placewright.api.objects import Pod
from placewright.api.profile import SchedulingProfile
from placewright.api.profileaccess import DEFAULTS_ON, NamespaceFacts, facts_of
from placewright.api.workloads import Namespace
from placewright.api.yamldocs import read_documents
from placewright.cli.options import read_text
from placewright.cli.profiles.connection import add_operator_options, ask, if_found, read_pod
from placewright.cli.profiles.namedprofiles import profile_of
from placewright.cli.terminal import console, print_data, print_table, say, table
from placewright.kube.client import ApiClient
from placewright.kube.profileadmission import assigns_profiles
from placewright.kube.profileapi import Object, list_profiles
from placewright.profiles.assignment import NEVER_IN, WhoGets, new_pod, who_gets

_STDIN: Final = "-"
_ENDINGS: Final = (".yaml", ".yml", ".json")
_DEFAULT_NAMESPACE: Final = "default"


class _Subject(NamedTuple):
    """A pod that is asked about, as the user named it."""

    name: str
    namespace: str
    pod: Pod


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("pod", metavar="POD", help="NAMESPACE/NAME of a pod in the cluster, a file of manifests, or - for standard input")
    parser.add_argument(
        "--pod-namespace", default=_DEFAULT_NAMESPACE, metavar="NAME", help="namespace of manifests that name none (default: %(default)s)"
    )
    parser.add_argument("-o", "--output", choices=("table", "yaml", "json"), default="table", help="default: table")
    add_operator_options(parser)


def main(args: argparse.Namespace) -> int:
    """Print for each pod the profile that it gets, and a line for each profile."""
    subjects = _from_manifests(args.pod, args.pod_namespace) if _names_manifests(args.pod) else None
    answers, note = ask(args, lambda client: _answers(client, args, subjects))
    if args.output != "table":
        print_data([_as_data(name, answer) for name, answer in answers], args.output)
    else:
        for number, (name, answer) in enumerate(answers):
            _print(name, answer, first=number == 0)
    if note:
        sys.stderr.write(f"placewright: {printable(note)}\n")
    return 0


async def _answers(client: ApiClient, args: argparse.Namespace, subjects: list[_Subject] | None) -> tuple[list[tuple[str, WhoGets]], str]:
    if subjects is None:
        subjects = [await _from_cluster(client, args.pod)]
    profiles, giving = await asyncio.gather(list_profiles(client), assigns_profiles(client))
    decoded = [profile_of(body) for body in profiles]
    never_in = NEVER_IN | {args.namespace}
    answers = []
    for each in subjects:
        pod = new_pod(each.pod, await _facts(client, each.namespace))
        answers.append((each.name, who_gets(pod, decoded, never_in, assigning=giving is not False)))
    note = "" if giving is not None else "whether an admission gives profiles to pods here may not be read: it is taken for granted"
    return answers, note


async def _facts(client: ApiClient, name: str) -> NamespaceFacts:
    """Read the facts about a namespace; its name and the default alone for one that does not exist yet."""
    paths = {each: f"/api/v1/namespaces/{quote(each, safe='')}" for each in (name, DEFAULTS_ON)}
    found = {each: await if_found(client.get_as(path, Namespace)) for each, path in paths.items()}
    namespaces = {each: namespace for each, namespace in found.items() if namespace is not None}
    facts = facts_of(name, namespaces)
    return facts if name in namespaces else replace(facts, labels={"kubernetes.io/metadata.name": name})


# --- whose pod -------------------------------------------------------------------------------------------------------------------


async def _from_cluster(client: ApiClient, text: str) -> _Subject:
    namespace, slash, name = text.rpartition("/")
    if not (namespace and slash and name) or "/" in namespace:
        raise bad_field("POD", text, "NAMESPACE/NAME of a pod, a file (a path, or a name that ends in .yaml, .yml or .json), or -")
    return _Subject(text, namespace, await read_pod(client, namespace, name))


def _names_manifests(text: str) -> bool:
    """Whether a text names manifests. NAMESPACE/NAME may look like a path, so a path without a usual ending must exist."""
    return text == _STDIN or text.endswith(_ENDINGS) or Path(text).is_file()


def _from_manifests(file: str, namespace: str) -> list[_Subject]:
    shown = "<stdin>" if file == _STDIN else file
    found = [subject for document in read_documents(read_text(file), shown) for subject in _subjects(document.value, namespace, shown)]
    if not found:
        raise InputError(f"{shown}: found no pod; allowed a Pod, or a workload with a template of pods")
    return found


def _subjects(content: Any, namespace: str, file: str) -> Iterator[_Subject]:
    """Yield the pods of a manifest: itself, or made of its template."""
    if not isinstance(content, Mapping):
        raise InputError(f"{file}: found {in_json(content)[:80]}; allowed manifests")
    if isinstance(items := content.get("items"), list):
        for item in items:
            yield from _subjects(item, namespace, file)
        return
    pod = content if content.get("kind") == "Pod" else _template(content)
    if pod is None:
        return
    metadata = content.get("metadata") or {}
    where = str(metadata.get("namespace") or namespace)
    name = str(metadata.get("name") or metadata.get("generateName") or "")
    kind = "" if content.get("kind") == "Pod" else f" of {content.get('kind')} {name}"
    try:
        yield _Subject(f"{where}/{name}" if not kind else f"in {where}{kind}", where, convert(pod, Pod))
    except DecodeError as problem:
        raise InputError(f"{file}: {problem}") from None


def _template(content: Mapping[str, Any]) -> Any:
    """Return the template of a workload's pods; None if it has none."""
    spec = content.get("spec")
    while isinstance(spec, Mapping):
        if isinstance(spec.get("template"), Mapping):
            return spec["template"]
        spec = (spec.get("jobTemplate") or {}).get("spec")  # of a CronJob
    return None


# --- the answer ------------------------------------------------------------------------------------------------------------------


def _print(name: str, answer: WhoGets, *, first: bool) -> None:
    to = console()
    say(to, *([] if first else [""]), f"pod {name}: {answer.said}")
    if not answer.verdicts:
        return
    rows = ((each.profile.metadata.name, _priority(each.profile), "yes" if each.gets_it else "no", each.why) for each in answer.verdicts)
    print_table(to, table("PROFILE", "PRIORITY", "GETS IT", "WHY", numbers=("PRIORITY",), rows=rows))


def _priority(profile: SchedulingProfile) -> str:
    pods = profile.spec.pods
    return "" if pods is None or not pods.assigns else str(pods.priority or 0)


def _as_data(name: str, answer: WhoGets) -> Object:
    verdicts = [{"profile": each.profile.metadata.name, "getsIt": each.gets_it, "why": each.why} for each in answer.verdicts]
    return {"pod": name, "said": answer.said, "profiles": verdicts}
