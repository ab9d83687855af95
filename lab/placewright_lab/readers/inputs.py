"""The start of a run from files and folders: nodes, pods, and the objects around them. This module reads the disk.

The header of a CSV file tells a trace (openb, DLRM). All other files have Kubernetes manifests. Folders are read with all their `.yaml`,
`.yml` and `.json` files, sorted by path.

Scenarios from files: manifests and traces. Arrivals and departures of a trace become changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from placewright.api.bad_input import InputError, bad_field
from placewright.api.compatibility import BASELINE
from placewright.offline.kinds import Manifest, create_rank
from placewright_lab.readers import dlrm, openb
from placewright_lab.readers.manifests import SourceText, read_manifests
from placewright_lab.readers.openb import NAMESPACE, TraceTimes
from placewright_lab.simulation.scenario import Act, Happening, Scenario

LARGEST_FILE: Final = 64 * 1024 * 1024
"""Bytes."""
_MANIFEST_SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})


@dataclass
class Inputs:
    """The start of a run.

    Attributes:
        nodes, pods: manifests in the form of a POST.
        others: all other objects, in the order in which a cluster accepts them.
        notes: remarks about the reading, for people.
        problems: faults of documents that were left out, if the caller asked for it.
    """

    nodes: list[Manifest] = field(default_factory=list)
    pods: list[Manifest] = field(default_factory=list)
    others: list[Manifest] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def load_inputs(
    nodes: Sequence[Path] = (), pods: Sequence[Path] = (), *, default_nodes: Sequence[Manifest] = (), skip_bad: bool = False
) -> Inputs:
    """Read nodes and pods from files and folders. Without a node in any file, take `default_nodes`.

    With `skip_bad`, wrong documents are left out and listed. Without it, the first one raises `InputError`. An unreadable file, or a wrong
    line of a trace, always raises.
    """
    found = Inputs()
    sources: list[SourceText] = []
    for source in read_sources([*nodes]):
        if openb.is_openb(source.text):
            found.nodes += openb.read_nodes(source.text, source.name)
        else:
            sources.append(source)
    for source in read_sources([*pods]):
        if openb.is_openb(source.text):
            found.pods += openb.read_pods(source.text, source.name)
        elif dlrm.is_dlrm(source.text):
            found.pods += dlrm.read_pods(source.text, source.name)
        else:
            sources.append(source)
    _read_manifests(found, sources, default_nodes, skip_bad=skip_bad)
    return found


def load_objects(paths: Sequence[Path], *, skip_bad: bool = False) -> Inputs:
    """Read manifests of any kind, including nodes and pods, from files and folders."""
    return load_inputs((), paths, skip_bad=skip_bad)


def read_sources(paths: Sequence[Path]) -> list[SourceText]:
    """Return the text of files, and of the manifests in folders. Raises `InputError` for an unreadable one."""
    return [SourceText(str(file), _text(file)) for path in paths for file in _files(path)]


def _read_manifests(found: Inputs, sources: Sequence[SourceText], default_nodes: Sequence[Manifest], *, skip_bad: bool) -> None:
    reading = read_manifests(sources, found.nodes)
    if default_nodes and not found.nodes and not reading.nodes:
        found.nodes += default_nodes
        reading = read_manifests(sources, default_nodes)  # now DaemonSets know their nodes
    if not skip_bad:
        reading.raise_first()
    found.nodes += reading.nodes
    found.pods += reading.pods
    found.others = sorted((o for o in reading.objects if o["kind"] != "Node"), key=create_rank)
    found.notes, found.problems = reading.notes, reading.problems


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(p for p in path.rglob("*") if p.suffix in _MANIFEST_SUFFIXES and p.is_file())
    if not files:
        raise bad_field(str(path), "a folder without manifests", "a folder with .yaml, .yml or .json files")
    return files


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError:
        raise InputError(f"{path!s}: is not a file name") from None
    if len(raw) > LARGEST_FILE:
        raise bad_field(str(path), "a larger file", f"at most {LARGEST_FILE >> 20} MiB")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise bad_field(f"{path}: line {line}", f"the byte 0x{raw[error.start]:02x}", "text in UTF-8") from None
    if not text.strip():
        raise bad_field(str(path), "an empty file", "a trace in the openb format, or Kubernetes manifests")
    return text


def read_scenario(paths: Sequence[Path], *, at_once: bool = False) -> Scenario:
    """Return a scenario from manifests (files and folders) and traces (openb, DLRM). Raises `InputError` for unusable input.

    With `at_once`, pods of a trace are there at the beginning, and stay.
    """
    sources = read_sources(paths)
    node_lists = [Path(source.name) for source in sources if openb.is_openb(source.text) and openb.is_node_list(source.text)]
    others = [Path(source.name) for source in sources if Path(source.name) not in node_lists]
    inputs = load_inputs(node_lists, others)
    nodes = sorted(inputs.nodes, key=lambda node: str(node["metadata"]["name"]))  # the order in which an API server lists them
    scenario = Scenario(", ".join(str(path) for path in paths), [*inputs.others, *nodes, *inputs.pods])
    return scenario if at_once else _with_times(scenario, [source for source in sources if Path(source.name) not in node_lists])


def join(scenario: Scenario, more: Scenario) -> Scenario:
    """Return both in one, with the changes of `more` after the first ones of equal times."""
    return Scenario(
        f"{scenario.source}, {more.source}",
        [*scenario.objects, *more.objects],
        sorted([*scenario.happenings, *more.happenings], key=lambda happening: happening.at),
        {**scenario.durations, **more.durations},
        max(scenario.start_seconds, more.start_seconds),
        more.kubernetes if scenario.kubernetes == BASELINE else scenario.kubernetes,
    )


def _with_times(scenario: Scenario, sources: Sequence[SourceText]) -> Scenario:
    """Make pods with times come and leave, instead of being there at the beginning."""
    times: dict[str, TraceTimes] = {}
    for source in sources:
        if openb.is_openb(source.text):
            times |= openb.read_times(source.text, source.name)
        elif dlrm.is_dlrm(source.text):
            times |= dlrm.read_times(source.text, source.name)
    stay: list[Manifest] = []
    happenings: list[Happening] = []
    durations: dict[str, float] = {}
    for manifest in scenario.objects:
        known = times.get(manifest["metadata"]["name"]) if _of_a_trace(manifest) else None
        if known is None:
            stay.append(manifest)
            continue
        happenings.append(Happening(known.created, Act.ADDED, manifest))
        if known.runs is not None:
            durations[f"{NAMESPACE}/{manifest['metadata']['name']}"] = known.runs
        elif known.deleted is not None:
            happenings.append(Happening(known.deleted, Act.DELETED, manifest))
    happenings.sort(key=lambda happening: happening.at)
    return replace(scenario, objects=stay, happenings=happenings, durations=durations)


def _of_a_trace(manifest: Manifest) -> bool:
    meta = manifest["metadata"]
    return manifest["kind"] == "Pod" and meta.get("namespace") == NAMESPACE and "uid" not in meta
