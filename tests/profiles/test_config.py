"""Reading manifests and kube-scheduler's configuration files."""

from __future__ import annotations

import pytest

from placewright.api.profile import Backoff, ProfileSpec
from placewright.profiles.config import read_profiles
from placewright.profiles.problem import ProfileError

CONFIG = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
MANIFEST = "apiVersion: placewright.dev/v1alpha1\nkind: SchedulingProfile\nmetadata: {name: web}\n"


def complaint(text: str) -> str:
    with pytest.raises(ProfileError) as caught:
        read_profiles(text, "a.yaml")
    return str(caught.value)


def test_a_manifest_is_read_with_its_metadata() -> None:
    text = MANIFEST.replace("{name: web}", "{name: web, creationTimestamp: 2026-01-02T03:04:05Z, managedFields: []}")
    (profile,) = read_profiles(text + "spec: {schedulerName: w, weights: {NodeAffinity: 3}}", "a.yaml")
    assert profile.metadata.name == "web"
    assert profile.metadata.creation_timestamp == "2026-01-02T03:04:05Z"
    assert profile.spec.weights == {"NodeAffinity": 3}


def test_several_documents_and_lists_are_read_in_order() -> None:
    text = f"{MANIFEST}spec: {{schedulerName: a}}\n---\n---\nkind: List\nitems:\n- {{kind: SchedulingProfile, "
    text += "apiVersion: placewright.dev/v1alpha1, metadata: {name: b}, spec: {schedulerName: b}}"
    assert [profile.spec.scheduler_name for profile in read_profiles(text, "a.yaml")] == ["a", "b"]


def test_a_scheduler_configuration_without_profiles_is_the_default_profile() -> None:
    (profile,) = read_profiles(CONFIG, "a.yaml")
    assert profile.spec.scheduler_name == "default-scheduler"
    assert profile.spec.backoff == Backoff()


def test_what_a_scheduler_configuration_says_for_all_is_folded_into_each_profile() -> None:
    text = CONFIG + (
        "percentageOfNodesToScore: 40\npodInitialBackoffSeconds: 2\npodMaxBackoffSeconds: 20\n"
        "leaderElection: {leaderElect: true, leaseDuration: 15s}\nparallelism: 16\n"
        "profiles:\n- {schedulerName: a}\n- {schedulerName: b, percentageOfNodesToScore: 0}\n"
    )
    first, second = read_profiles(text, "a.yaml")
    assert (first.metadata.name, second.metadata.name) == ("a", "b")
    assert (first.spec.percentage_of_nodes_to_score, second.spec.percentage_of_nodes_to_score) == (40, 0)
    assert first.spec.backoff == second.spec.backoff == Backoff(initial_seconds=2, max_seconds=20)


def test_plugins_of_a_scheduler_configuration_are_taken_as_written() -> None:
    text = CONFIG + "profiles:\n- plugins: {score: {disabled: [{name: '*'}], enabled: [{name: ImageLocality, weight: 5}]}}\n"
    (profile,) = read_profiles(text, "a.yaml")
    enabled = profile.spec.plugins.score.enabled
    assert enabled is not None
    assert [(ref.name, ref.weight) for ref in enabled] == [("ImageLocality", 5)]


def test_null_means_absent() -> None:
    (profile,) = read_profiles(MANIFEST + "spec: {schedulerName: null, paused: null, plugins: {score: null}}", "a.yaml")
    assert (profile.spec.scheduler_name, profile.spec.paused) == ("", False)


CASES = {
    "an unknown field of spec": (
        MANIFEST + "spec: {weigths: {}}",
        (
            f"a.yaml: spec.weigths: found an unknown field; allowed {', '.join(ProfileSpec.__struct_encode_fields__)} "
            "(did you mean 'weights'?)"
        ),
    ),
    "an unknown field deep inside": (
        CONFIG + "profiles: [{plugins: {score: {enable: []}}}]",
        "a.yaml: profiles[0].plugins.score.enable: found an unknown field; allowed enabled, disabled (did you mean 'enabled'?)",
    ),
    "a value of a wrong type": (
        CONFIG + "profiles: [{plugins: {score: {enabled: [{name: A}, {name: B, weight: heavy}]}}}]",
        'a.yaml: profiles[0].plugins.score.enabled[1].weight: found "heavy"; allowed a whole number',
    ),
    "a missing field": (
        CONFIG + "profiles: [{pluginConfig: [{args: {}}]}]",
        "a.yaml: profiles[0].pluginConfig[0].name: found nothing; allowed a value: the field is required",
    ),
    "a key written twice": (
        MANIFEST + "spec:\n  paused: true\n  paused: false\n",
        'a.yaml: line 6, column 3: found the key "paused" a second time; allowed each key once',
    ),
    "broken YAML": (MANIFEST + "spec: [", "a.yaml: line 4, column 8: found "),
    "an empty file": ("", "a.yaml: found an empty document; allowed a profile"),
    "something that is no object": ("[1, 2]", "a.yaml: found [1, 2]; allowed an object of kind SchedulingProfile or"),
    "another kind": ("kind: Pod\napiVersion: v1", 'a.yaml: kind: found "Pod"; allowed SchedulingProfile or KubeSchedulerConfiguration'),
    "an older version of the configuration": (
        CONFIG.replace("/v1", "/v1beta3"),
        'a.yaml: apiVersion: found "kubescheduler.config.k8s.io/v1beta3"; allowed kubescheduler.config.k8s.io/v1 (placewright convert ',
    ),
    "a legacy Policy": (
        "kind: Policy\napiVersion: v1",
        'a.yaml: kind: found "Policy"; allowed SchedulingProfile or KubeSchedulerConfiguration (placewright convert translates a Policy)',
    ),
    "a manifest without a name": (MANIFEST.replace("name: web", ""), "a.yaml: metadata.name: found nothing; allowed a name"),
    "several profiles, one without a name": (
        CONFIG + "profiles: [{schedulerName: a}, {}]",
        "a.yaml: profiles[1].schedulerName: found nothing; allowed a name, where there are several profiles",
    ),
    "one schedulerName twice": (
        CONFIG + "profiles: [{schedulerName: a}, {schedulerName: a}]",
        'a.yaml: schedulerName: found "a"; allowed each schedulerName once',
    ),
    "a Python object": (MANIFEST + "spec: !!python/object/apply:os.system [ls]", "a.yaml: line 4, column 7: found tag:yaml.org,2002:py"),
    "a huge file": ("#" * 2_000_000, "a.yaml: found 2000000 characters; allowed at most 1048576"),
    "nesting without end": ("[" * 100_000, "a.yaml: line 1, column 101: found nesting deeper than 100; allowed at most 100 levels"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_file_is_refused_in_one_line_with_its_name_and_the_path(case: str) -> None:
    text, line = CASES[case]
    found = complaint(text)
    assert found.startswith(line)
    assert "\n" not in found


def test_an_alias_to_what_it_stands_in_is_refused() -> None:
    text = MANIFEST + "spec: {pluginConfig: [{name: NodeName, args: &loop {again: *loop}}]}"
    with pytest.raises(ProfileError, match="line 4, column 60: found an alias to something that it is part of"):
        read_profiles(text, "a.yaml")
