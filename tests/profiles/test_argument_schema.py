"""The schema of arguments and the reader of profiles say the same; jsonschema is the judge of what the schema says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Final

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from placewright.framework.constraints import nothing, one_of, within, without
from placewright.plugins.catalog import in_tree
from placewright.profiles.arguments import argument_schema, broken_constraints, has_arguments, read_args
from placewright.profiles.problem import ProfileError
from placewright_legacy_plugins import NodeLabel, ServiceAffinity
from profiles.makers import FitArgs, plugin
from randomcases import cases

REGISTRY: Final = in_tree().extended([NodeLabel, ServiceAffinity])
WITH_ARGUMENTS: Final = sorted(name for name in REGISTRY if has_arguments(REGISTRY[name]))
#: What no schema of one field can say: by plugin, the paths that such rules name.
ACROSS_FIELDS: Final = {
    "NodeAffinity": r"addedAffinity\.(required\w+\.nodeSelectorTerms\[\d+\]|preferred\w+\[\d+\]\.preference)",
    "NodeLabel": r"presentLabels(Preference)?\[\d+\]",
    "NodeResourcesFit": r"scoringStrategy\.requestedToCapacityRatio(\.shape(\[\d+\]\.utilization)?)?",
    "NodeResourcesBalancedAllocation": r"resources\[\d+\]\.name",
    "PodTopologySpread": r"defaultConstraints(\[\d+\](\.minDomains)?)?",
    "DefaultPreemption": r"minCandidateNodesPercentage",
    "DomainLimit": r"limits(\[\d+\](\.(selector|topologyKey|namespaces|matchLabelKeys\[\d+\]))?)?",
    "DeviceFragmentation": r"resource|typicalPods\[\d+\]\.requests(\..*)?",
    "NodeRejections": r"maxSeconds",
    "NodeStartRate": r"domains\[\d+\]\.topologyKey",
    "VolumeBinding": r"shape(\[\d+\]\.utilization)?",
}


def refused(name: str, args: dict[str, Any]) -> list[str]:
    """Paths of what the reader finds wrong."""
    try:
        read_args(REGISTRY[name], args)
    except ProfileError as error:
        return [problem.path for problem in error.problems]
    return []


@cache
def judge_of(name: str) -> Draft202012Validator:
    return Draft202012Validator(argument_schema(REGISTRY[name]))


def fits_schema(name: str, args: dict[str, Any]) -> bool:
    return judge_of(name).is_valid(args)


# --- upstream's own examples -------------------------------------------------------------------------------------------------------


def spread(**constraint: Any) -> dict[str, Any]:
    usual = {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}
    return {"defaultingType": "List", "defaultConstraints": [usual | constraint]}


def ratio(*points: tuple[int, int], **strategy: Any) -> dict[str, Any]:
    shape = [{"utilization": utilization, "score": score} for utilization, score in points]
    return {"scoringStrategy": {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": shape}, **strategy}}


def weighing(*resources: tuple[str, int]) -> dict[str, Any]:
    return {"resources": [{"name": name, "weight": weight} for name, weight in resources]}


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("DefaultPreemption", {}),
        ("DefaultPreemption", {"minCandidateNodesPercentage": 50, "minCandidateNodesAbsolute": 100}),
        ("DefaultPreemption", {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 1}),
        ("InterPodAffinity", {"hardPodAffinityWeight": 100}),
        ("InterPodAffinity", {"hardPodAffinityWeight": 0, "ignorePreferredTermsOfExistingPods": True}),
        ("PodTopologySpread", {"defaultingType": "List", "defaultConstraints": []}),
        ("PodTopologySpread", spread()),
        ("PodTopologySpread", spread(whenUnsatisfiable="ScheduleAnyway", maxSkew=2)),
        ("NodeResourcesFit", {"ignoredResources": ["vendor.com/a"], "ignoredResourceGroups": ["vendor.com"]}),
        ("NodeResourcesFit", ratio((30, 3))),
        ("NodeResourcesFit", ratio((0, 0), (50, 10), (100, 0))),
        ("NodeResourcesFit", {"scoringStrategy": {"type": "MostAllocated", **weighing(("cpu", 100), ("vendor.com/gpu", 1))}}),
        ("NodeResourcesBalancedAllocation", weighing(("cpu", 1), ("scalar0", 1))),
        ("NodeAffinity", {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}),
        ("VolumeBinding", {"bindTimeoutSeconds": 0}),
        ("VolumeBinding", {"bindTimeoutSeconds": 10, "shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]}),
        ("NodePorts", {}),
        ("NodePorts", {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "NodePortsArgs"}),
    ],
)  # fmt: skip
def test_valid_examples_are_valid_for_both(name: str, args: dict[str, Any]) -> None:
    assert fits_schema(name, args)
    assert refused(name, args) == []


@pytest.mark.parametrize(
    ("name", "args", "path"),
    [
        ("DefaultPreemption", {"minCandidateNodesPercentage": -1}, "minCandidateNodesPercentage"),
        ("DefaultPreemption", {"minCandidateNodesPercentage": 900}, "minCandidateNodesPercentage"),
        ("DefaultPreemption", {"minCandidateNodesAbsolute": -1}, "minCandidateNodesAbsolute"),
        ("DefaultPreemption", {"minCandidateNodesAbsolute": "1"}, "minCandidateNodesAbsolute"),
        ("InterPodAffinity", {"hardPodAffinityWeight": -1}, "hardPodAffinityWeight"),
        ("InterPodAffinity", {"hardPodAffinityWeight": 101}, "hardPodAffinityWeight"),
        ("InterPodAffinity", {"hardPodAffinityWeight": True}, "hardPodAffinityWeight"),
        ("PodTopologySpread", {"defaultingType": "Guess"}, "defaultingType"),
        ("PodTopologySpread", spread(maxSkew=0), "defaultConstraints[0].maxSkew"),
        ("PodTopologySpread", spread(topologyKey=""), "defaultConstraints[0].topologyKey"),
        ("PodTopologySpread", spread(topologyKey=None), "defaultConstraints[0].topologyKey"),
        ("PodTopologySpread", {"defaultingType": "List", "defaultConstraints": [{}]}, "defaultConstraints[0].topologyKey"),
        ("PodTopologySpread", spread(whenUnsatisfiable="unknown"), "defaultConstraints[0].whenUnsatisfiable"),
        ("PodTopologySpread", spread(labelSelector={"matchLabels": {"a": "b"}}), "defaultConstraints[0].labelSelector"),
        ("PodTopologySpread", spread(minDomains=0), "defaultConstraints[0].minDomains"),
        ("NodeResourcesFit", {"ignoredResourceGroups": ["a.com/x"]}, "ignoredResourceGroups[0]"),
        ("NodeResourcesFit", ratio((-10, 3)), "scoringStrategy.requestedToCapacityRatio.shape[0].utilization"),
        ("NodeResourcesFit", ratio((101, 3)), "scoringStrategy.requestedToCapacityRatio.shape[0].utilization"),
        ("NodeResourcesFit", ratio((0, -1)), "scoringStrategy.requestedToCapacityRatio.shape[0].score"),
        ("NodeResourcesFit", ratio((0, 11)), "scoringStrategy.requestedToCapacityRatio.shape[0].score"),
        ("NodeResourcesFit", ratio((0, 1), **weighing(("cpu", 101))), "scoringStrategy.resources[0].weight"),
        ("NodeResourcesFit", {"scoringStrategy": {"type": "Random"}}, "scoringStrategy.type"),
        ("NodeResourcesFit", {"scoringStrategy": {"resources": [{"weight": 1}]}}, "scoringStrategy.resources[0].name"),
        ("NodeResourcesBalancedAllocation", weighing(("cpu", 2)), "resources[0].weight"),
        ("VolumeBinding", {"bindTimeoutSeconds": -10}, "bindTimeoutSeconds"),
        ("VolumeBinding", {"shape": [{"utilization": 0, "score": 11}]}, "shape[0].score"),
        ("NodePorts", {"ports": 1}, "ports"),
        ("NodePorts", {"kind": "NodeNameArgs"}, "kind"),
    ],
)  # fmt: skip
def test_invalid_examples_are_invalid_for_both(name: str, args: dict[str, Any], path: str) -> None:
    assert not fits_schema(name, args)
    assert refused(name, args) == [path]


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("DefaultPreemption", {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0}),
        ("PodTopologySpread", {"defaultConstraints": [{"topologyKey": "z"}]}),
        ("PodTopologySpread", {"defaultingType": "List", "defaultConstraints": [{"topologyKey": "z"}] * 2}),
        ("PodTopologySpread", spread(whenUnsatisfiable="ScheduleAnyway", minDomains=1)),
        ("NodeResourcesFit", ratio()),
        ("NodeResourcesFit", ratio((30, 0), (20, 5))),
        ("NodeResourcesFit", ratio((30, 0), (30, 5))),
        ("NodeResourcesFit", ratio((0, 0), type="LeastAllocated")),
        ("NodeResourcesBalancedAllocation", weighing(("cpu", 1), ("cpu", 1))),
        ("NodeAffinity", {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Like"}]}]}}}),
        ("VolumeBinding", {"shape": []}),
    ],
)  # fmt: skip
def test_rules_across_fields_are_the_readers_alone(name: str, args: dict[str, Any]) -> None:
    assert fits_schema(name, args)
    assert all(re.fullmatch(ACROSS_FIELDS[name], path) for path in refused(name, args))
    assert refused(name, args)


# --- the two agree on anything -----------------------------------------------------------------------------------------------------

#: No fractions of zero: to a schema 1.0 is a whole number.
JUNK: Final = st.none() | st.booleans() | st.integers(-2, 102) | st.just(0.5) | st.text("aZ/", max_size=3) | st.just([]) | st.just({})


def near(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values about as the schema wants them, seldom junk."""
    found = _meant(schema)
    return st.integers(0, 9).flatmap(lambda dice: JUNK if dice == 0 else found)


def _meant(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    types = schema.get("type", "string")
    kind = types if isinstance(types, str) else types[0]
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if kind == "object":
        return _object_near(schema)
    if kind == "array":
        return st.lists(near(schema["items"]), max_size=3)
    if kind == "integer":
        least, most = schema.get("minimum", 0), schema.get("maximum", 101)
        return st.sampled_from([least - 1, least, least + 1, most - 1, most, most + 1])
    return {"boolean": st.booleans(), "null": st.none()}.get(kind, st.sampled_from(["", "a", "b", "a/b", "In", "kubernetes.io/hostname"]))


def _object_near(schema: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    if "properties" not in schema:
        return st.dictionaries(st.sampled_from(["a", "b"]), near(schema["additionalProperties"]), max_size=2)
    named = {name: near(of) for name, of in schema["properties"].items()}
    required = set(schema.get("required", ()))
    known = st.fixed_dictionaries(
        {name: named[name] for name in required}, optional={name: of for name, of in named.items() if name not in required}
    )
    dropped = st.sets(st.sampled_from(sorted(named))) if named else st.just(set())
    some = st.tuples(known, dropped, st.integers(0, 9)).map(
        lambda drawn: drawn[0] if drawn[2] else {key: value for key, value in drawn[0].items() if key not in drawn[1]}
    )
    return st.tuples(some, st.integers(0, 15)).map(lambda drawn: drawn[0] if drawn[1] else {**drawn[0], "unknownField": 1})


@cache
def arguments_near(name: str) -> st.SearchStrategy[dict[str, Any]]:
    return _object_near(argument_schema(REGISTRY[name]))


@pytest.mark.parametrize("name", WITH_ARGUMENTS)
@settings(max_examples=cases(150))
@given(data=st.data())
def test_the_schema_accepts_what_the_reader_accepts_but_for_rules_across_fields(name: str, data: st.DataObject) -> None:
    args = data.draw(arguments_near(name))
    wrong = refused(name, args)
    if fits_schema(name, args):
        assert all(re.fullmatch(ACROSS_FIELDS.get(name, "never"), path) for path in wrong)
    else:
        assert wrong


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_every_schema_is_one_and_takes_its_own_defaults(name: str) -> None:
    schema = argument_schema(REGISTRY[name])
    Draft202012Validator.check_schema(schema)
    defaults = {field: of["default"] for field, of in schema["properties"].items() if "default" in of}
    assert fits_schema(name, defaults)
    assert read_args(REGISTRY[name], defaults) == REGISTRY[name].Args()


# --- other people's arguments --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Corner:
    """A nested dataclass."""

    top_left: Annotated[int, within(0)]
    colour: Annotated[str, one_of("red", "blue")] = "red"


@dataclass(frozen=True)
class OwnArgs:
    """What an author of a plugin may write.

    More than a paragraph.
    """

    corners: tuple[Corner, ...] = ()
    ratio: float = 0.5
    per_zone: dict[str, int] | None = None
    bounded: Annotated[int, msgspec.Meta(ge=1, le=3)] = 1
    names: Annotated[tuple[str, ...], msgspec.Meta(max_length=2)] = ()
    either: int | str = 1
    group: Annotated[str, without("/", "no slash")] = ""
    unused: Annotated[int | None, nothing("nothing yet")] = None


OWN: Final = plugin("Own", "filter", args=OwnArgs)


@pytest.mark.parametrize(
    ("args", "path"),
    [
        ({"corners": [{"topLeft": 0, "colour": "blue"}], "ratio": 1, "perZone": {"a": 1}, "either": "x", "group": "g"}, None),
        ({"corners": [{"topLeft": 1}, {"topLeft": -1}]}, "corners[1].topLeft"),
        ({"corners": [{"topLeft": 1, "colour": "green"}]}, "corners[0].colour"),
        ({"corners": [{"colour": "red"}]}, "corners[0].topLeft"),
        ({"corners": [{"top_left": 1}]}, "corners[0].top_left"),
        ({"perZone": {"a": "1"}}, "perZone.a"),
        ({"bounded": 4}, "bounded"),
        ({"names": ["a", "b", "c"]}, "names"),
        ({"either": []}, "either"),
        ({"group": "a/b"}, "group"),
        ({"unused": 1}, "unused"),
        ({"unused": None, "perZone": None, "corners": None}, None),
    ],
)
def test_authors_get_the_same_from_dataclasses(args: dict[str, Any], path: str | None) -> None:
    valid = not list(Draft202012Validator(argument_schema(OWN)).iter_errors(args))
    try:
        read_args(OWN, args)
        found = None
    except ProfileError as error:
        found = error.problems[0].path
    assert valid is (found is None)
    assert found == path


def test_a_broken_constraint_says_what_is_allowed() -> None:
    [problem] = broken_constraints(Corner(-1))
    assert str(problem) == "topLeft: found -1; allowed 0 or more"
    [problem] = broken_constraints(Corner(0, "green"))
    assert str(problem) == 'colour: found "green"; allowed red or blue'


def test_only_the_first_paragraph_describes() -> None:
    assert argument_schema(OWN)["description"] == "What an author of a plugin may write."


def test_arguments_without_constraints_have_a_schema_too() -> None:
    schema = argument_schema(plugin("Fit", "filter", args=FitArgs))
    assert schema["properties"]["topWeight"] == {"type": ["integer", "null"], "default": 1}
