"""Scenarios from files: manifests and traces. Arrivals and departures of a trace become changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from placewright.offline.kinds import Manifest
from placewright_lab.readers import dlrm, openb
from placewright_lab.readers.inputs import load_inputs, read_sources
from placewright_lab.readers.manifests import SourceText
from placewright_lab.readers.tracefile import NAMESPACE, TraceTimes
from placewright_lab.simulation.scenario import Act, Happening, Scenario


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
