"""Whatever a document holds, the answer is profiles or a `ProfileError`, never another exception."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from placewright.api.profile import SchedulingProfile
from placewright.framework.runtime.resolvedprofile import ExtensionPoint
from placewright.plugins.catalog import in_tree
from placewright.profiles.config import read_profiles
from placewright.profiles.problem import ProfileError
from placewright.profiles.resolve import resolve
from profiles.makers import CATALOGUE
from randomcases import cases

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
NAMES = st.sampled_from([*CATALOGUE, "*", "PodTopologySpread", "", "Nonsense"])
ANYTHING = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3), max_leaves=8
)
REFS = st.lists(st.fixed_dictionaries({"name": NAMES}, optional={"weight": st.integers(-1, 100_001)}) | ANYTHING, max_size=3)
POINTS = st.sampled_from(["multiPoint", *ExtensionPoint])
SETS = st.fixed_dictionaries({}, optional={"enabled": REFS, "disabled": REFS})
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "schedulerName": st.text(max_size=5),
        "plugins": st.dictionaries(POINTS, SETS | ANYTHING, max_size=3),
        "pluginConfig": st.lists(st.fixed_dictionaries({"name": NAMES, "args": ANYTHING}), max_size=2),
        "weights": st.dictionaries(NAMES, st.integers(-1, 100_001) | SCALARS, max_size=3),
        "backoff": st.fixed_dictionaries({}, optional={"initialSeconds": st.floats() | st.integers(), "maxSeconds": st.floats()}),
        "percentageOfNodesToScore": st.integers(-1, 101),
        "preemption": st.fixed_dictionaries({}, optional={"waitSeconds": st.floats(), "protect": ANYTHING, "maxVictims": st.integers()}),
    },
)


def document(spec: Any) -> dict[str, Any]:
    return {"apiVersion": "placewright.dev/v1alpha1", "kind": "SchedulingProfile", "metadata": {"name": "p"}, "spec": spec}


@settings(max_examples=cases(300))
@given(spec=SPECS | ANYTHING)
def test_a_spec_is_resolved_or_refused(spec: Any) -> None:
    with contextlib.suppress(ProfileError):
        (profile,) = read_profiles(document(spec), "x")
        result = resolve(profile, CATALOGUE)
        assert len(result.at(ExtensionPoint.QUEUE_SORT)) == 1
        assert set(result.weights) == set(result.at(ExtensionPoint.SCORE))
        assert all(weight > 0 for weight in result.weights.values())
        assert set(result.args) == set(result.plugin_names)
        for point in ExtensionPoint:
            assert len(set(result.at(point))) == len(result.at(point))
            assert all(point.implemented_by(CATALOGUE[name]) for name in result.at(point))


def outcome(content: Any) -> Sequence[SchedulingProfile] | ProfileError:
    """The profiles, each of which can be resolved, or the refusal."""
    try:
        found = read_profiles(content, "x")
        for profile in found:
            resolve(profile, in_tree())
    except ProfileError as refused:
        return refused
    return found


@settings(max_examples=cases(200))
@given(name=st.sampled_from(sorted(in_tree())), args=ANYTHING)
def test_arguments_of_every_shipped_plugin_are_taken_or_refused(name: str, args: Any) -> None:
    taken = outcome(document({"schedulerName": "x", "pluginConfig": [{"name": name, "args": args}]}))
    if isinstance(taken, ProfileError):
        assert all(problem.path.startswith("spec.pluginConfig") for problem in taken.problems)
    else:
        (resolved,) = (resolve(profile, in_tree()) for profile in taken)
        assert set(resolved.args) == set(resolved.plugin_names)


@settings(max_examples=cases(200))
@given(text=st.text(alphabet="abc:- \n\t[]{}&*!#|>'\"%@`,?0.~", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    found = outcome(text)
    assert found.problems if isinstance(found, ProfileError) else found == []  # no text of this alphabet names a kind


@settings(max_examples=cases(200))
@given(content=ANYTHING)
def test_any_document_is_read_or_refused(content: Any) -> None:
    config = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "profiles": content}
    found = outcome(config)
    assert found.problems if isinstance(found, ProfileError) else all(isinstance(each, SchedulingProfile) for each in found)
