"""Any profile of an older configuration against kube-scheduler's own merging of that time, written down here once more."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placewright.framework.runtime.resolvedprofile import ExtensionPoint
from placewright.plugins.catalog import in_tree
from placewright.profiles.kubescheduler.reader import convert
from placewright.profiles.problem import ProfileError
from placewright.profiles.resolve import resolve
from placewright_legacy_plugins import NodeLabel, NodePreferAvoidPods, SelectorSpread, ServiceAffinity
from profiles.makers import yaml_of
from randomcases import cases

PLUGINS = in_tree().extended([NodeLabel, NodePreferAvoidPods, SelectorSpread, ServiceAffinity])
#: `getDefaultPlugins` of v1beta1 (1.22) and v1beta2 (1.25): filter, and score with weights.
FILTER = (
    "NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit", "VolumeRestrictions", "EBSLimits",
    "GCEPDLimits", "NodeVolumeLimits", "AzureDiskLimits", "VolumeBinding", "VolumeZone", "PodTopologySpread", "InterPodAffinity",
)  # fmt: skip
_BOTH = {
    "NodeResourcesBalancedAllocation": 1, "ImageLocality": 1, "InterPodAffinity": 1, "NodeAffinity": 1, "PodTopologySpread": 2,
    "TaintToleration": 1,
}  # fmt: skip
SCORE = {
    "v1beta1": _BOTH | {"NodeResourcesLeastAllocated": 1, "NodePreferAvoidPods": 10000},
    "v1beta2": _BOTH | {"NodeResourcesFit": 1},
}
#: What may be named at these points beside the defaults.
MORE_FILTERS = ("CinderLimits", "NodeLabel")
MORE_SCORES = {
    "v1beta1": ("NodeResourcesMostAllocated", "SelectorSpread", "ServiceAffinity"),
    "v1beta2": ("SelectorSpread", "ServiceAffinity", "NodePreferAvoidPods"),
}
STRATEGIES = {"NodeResourcesLeastAllocated", "NodeResourcesMostAllocated"}
LATER = {"DynamicResources", "NodeDeclaredFeatures", "GangScheduling"}


def merged(defaults: dict[str, int], enabled: dict[str, int], disabled: set[str]) -> dict[str, int]:
    """`mergePluginSet`: defaults that are not disabled, and what is enabled, which goes before."""
    kept = {} if "*" in disabled else {name: weight for name, weight in defaults.items() if name not in disabled}
    return kept | {name: weight or 1 for name, weight in enabled.items()}


def as_strategies(scores: dict[str, int]) -> dict[str, int]:
    """One of the three former plugins at most, the heaviest, as NodeResourcesFit."""
    heaviest = max((scores[name] for name in STRATEGIES if name in scores), default=0)
    rest = {name: weight for name, weight in scores.items() if name not in STRATEGIES}
    return rest | ({"NodeResourcesFit": heaviest} if heaviest else {})


def chosen(version: str) -> st.SearchStrategy[dict[str, Any]]:
    scores = [*SCORE[version], *MORE_SCORES[version]]
    filters = [*FILTER, *MORE_FILTERS]
    return st.fixed_dictionaries(
        {
            "score": st.dictionaries(st.sampled_from(scores), st.integers(0, 100), max_size=4),
            "unscored": st.sets(st.sampled_from([*scores, "*"]), max_size=4),
            "filter": st.sets(st.sampled_from(filters), max_size=3),
            "unfiltered": st.sets(st.sampled_from([*filters, "*"]), max_size=4),
        }
    )


def document(version: str, choice: dict[str, Any]) -> str:
    plugins = {
        "score": {
            "enabled": [{"name": name, "weight": weight} for name, weight in choice["score"].items()],
            "disabled": [{"name": name} for name in sorted(choice["unscored"])],
        },
        "filter": {
            "enabled": [{"name": name} for name in sorted(choice["filter"])],
            "disabled": [{"name": name} for name in sorted(choice["unfiltered"])],
        },
    }
    api_version = f"kubescheduler.config.k8s.io/{version}"
    return yaml_of({"apiVersion": api_version, "kind": "KubeSchedulerConfiguration", "profiles": [{"plugins": plugins}]})


@pytest.mark.parametrize("version", SCORE)
@given(data=st.data())
@settings(max_examples=cases(200))
def test_any_choice_of_plugins_filters_and_scores_as_it_did(version: str, data: st.DataObject) -> None:
    choice = data.draw(chosen(version))
    result = resolve(convert(document(version, choice), "a.yaml", PLUGINS).profiles[0], PLUGINS)
    scores = {name: weight for name, weight in result.weights.items() if name not in LATER and name != "VolumeBinding"}
    assert scores == as_strategies(merged(SCORE[version], choice["score"], choice["unscored"]))
    filters = merged(dict.fromkeys(FILTER, 1), dict.fromkeys(choice["filter"], 1), choice["unfiltered"])
    assert set(result.at(ExtensionPoint.FILTER)) - LATER == set(filters)


# --- input of any kind --------------------------------------------------------------------------------------------------------------

WORDS = st.sampled_from(
    [
        "kind", "apiVersion", "profiles", "plugins", "score", "enabled", "name", "weight", "predicates", "priorities", "argument", "data",
        "items", "extenders", "List", "ConfigMap", "Policy", "KubeSchedulerConfiguration", "SchedulingProfile", "v1", "metadata", "spec",
        "kubescheduler.config.k8s.io/v1", "kubescheduler.config.k8s.io/v1beta1", "placewright.dev/v1alpha1", "NodeLabel",
    ]
)  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=5),
    max_leaves=15,
)
KINDS = st.sampled_from(
    [
        {"kind": "Policy", "apiVersion": "v1"},
        {"kind": "KubeSchedulerConfiguration", "apiVersion": "kubescheduler.config.k8s.io/v1beta1"},
        {"kind": "SchedulingProfile", "apiVersion": "placewright.dev/v1alpha1", "metadata": {"name": "a"}},
        {"kind": "ConfigMap"},
        {},
    ]
)


@given(KINDS, st.dictionaries(WORDS, VALUES, max_size=4))
@settings(max_examples=cases(300))
def test_whatever_is_read_is_converted_or_refused_in_words(kind: dict[str, Any], fields: dict[str, Any]) -> None:
    said = ""
    try:
        for profile in convert(yaml_of(fields | kind), "a.yaml", PLUGINS).profiles:
            resolve(profile, PLUGINS)
    except ProfileError as refusal:
        said = str(refusal)
    assert all(line.startswith("a.yaml: ") for line in said.splitlines())


ENDLESS = {
    "a loop": ("kind: Policy\nextenders: &loop [{managedResources: *loop}]\n", "an alias to something that it is part of"),
    "a document that aliases multiply": (
        "kind: Policy\na: &a [x, x, x, x, x, x, x, x, x, x]\n"
        + "".join(f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n" for old, new in zip("abcdefg", "bcdefgh", strict=True)),
        "aliases for more than 100000 values",
    ),
    "a document that is long": (
        f"kind: Policy\na: &a [{'x, ' * 99}]\nb: [{'*a, ' * 1000}]\n",  # as many aliased values as the parser lets pass
        "more than 100000 values, aliases written out",
    ),
}


@pytest.mark.parametrize("case", ENDLESS)
def test_a_document_without_end_is_refused(case: str) -> None:
    text, said = ENDLESS[case]
    with pytest.raises(ProfileError, match=f"found {said}; allowed"):
        convert(text, "a.yaml", PLUGINS)
