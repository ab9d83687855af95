"""Who owns what of a profile: what we applied is found again in it, and who changed it last."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from handlers.stage import Stage, new_stage
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright.kube.history import (
    RecordedGeneration,
    label_of,
    name_of,
    operator_namespace,
    with_keys_of,
    without_keys,
)
from placewright.kube.profileapi import (
    Author,
    SpecChange,
    apply_profile,
    last_author,
    list_profiles,
    manifest_of,
    merge_profile,
    owned_spec,
)

FIT = {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}
APPLIED: list[dict[str, Any]] = [
    {"weights": {"NodeAffinity": 5}},
    {"plugins": {"score": {"enabled": [{"name": "NodeAffinity", "weight": 3}], "disabled": [{"name": "ImageLocality"}]}}},
    {"pluginConfig": [FIT], "backoff": {"initialSeconds": 2, "maxSeconds": 20}},
    {"paused": True, "extenders": [{"urlPrefix": "http://x.test", "filterVerb": "filter"}]},
]
OF_OTHERS = {
    "weights": {"TaintToleration": 4},
    "percentageOfNodesToScore": 50,
    "plugins": {"score": {"enabled": [{"name": "TaintToleration", "weight": 2}]}, "filter": {"enabled": [{"name": "NodePorts"}]}},
    "pluginConfig": [{"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 7}}],
}


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with new_stage() as made:
        yield made


@pytest.fixture
async def client(stage: Stage) -> AsyncIterator[ApiClient]:
    async with ApiClient(load_config(str(stage.sandbox.kubeconfig))) as made:
        yield made


@pytest.mark.parametrize("applied", APPLIED, ids=lambda each: next(iter(each)))
async def test_what_was_applied_is_found_among_what_others_wrote(stage: Stage, client: ApiClient, applied: dict[str, Any]) -> None:
    stage.profile("web", **OF_OTHERS)
    body = await apply_profile(client, manifest_of("web", applied), force=True, dry_run=False)
    assert owned_spec(body) == applied
    assert body["spec"]["percentageOfNodesToScore"] == 50
    again = await apply_profile(client, manifest_of("web", owned_spec(body)), force=False, dry_run=False)
    assert again["metadata"]["generation"] == body["metadata"]["generation"]


async def test_whoever_never_applied_owns_nothing(stage: Stage, client: ApiClient) -> None:
    stage.profile("web", **OF_OTHERS)
    body = await merge_profile(client, "web", {"spec": {"weights": {"NodeAffinity": 5}}}, dry_run=False)
    assert owned_spec(body) == {}


async def test_a_dry_run_writes_nothing(stage: Stage, client: ApiClient) -> None:
    stage.profile("web")
    tried = await merge_profile(client, "web", {"spec": {"paused": True}}, dry_run=True)
    assert (tried["spec"]["paused"], stage.show_profile("web")["spec"].get("paused")) == (True, False)


async def test_all_profiles_are_listed_by_name_also_from_several_pages(
    stage: Stage, client: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("placewright.kube.profileapi._LIST_PAGE", 2)
    for name in ("c", "a", "e", "b", "d"):
        stage.profile(name, schedulerName=name)
    assert [each["metadata"]["name"] for each in await list_profiles(client)] == ["a", "b", "c", "d", "e"]


def entry(manager: str, time: str, *, fields: str = "f:spec", **more: Any) -> dict[str, Any]:
    return {"manager": manager, "time": time, "fieldsV1": {fields: {}}, **more}


def test_the_last_author_is_the_latest_whose_entry_is_new() -> None:
    old = [entry("argocd", "2026-01-01T00:00:05Z"), entry("kubectl", "2026-01-01T00:00:05Z")]
    status = entry("placewright", "2026-01-01T00:00:09Z", subresource="status")
    now = [old[0], entry("kubectl", "2026-01-01T00:00:05Z", operation="Apply"), status]
    assert last_author(now, old) == Author("kubectl", "2026-01-01T00:00:05Z")
    assert last_author([entry("first", "2026-01-01T00:00:01Z"), entry("last", "2026-01-01T00:00:02Z")]).manager == "last"


def test_nobody_is_named_for_labels_or_for_what_was_only_taken_away() -> None:
    old = [entry("argocd", "2026-01-01T00:00:05Z"), entry("kubectl", "2026-01-01T00:00:05Z")]
    assert last_author(old[:1], old) == Author("", "")
    assert last_author([entry("labeller", "2026-01-01T00:00:05Z", fields="f:metadata")]) == Author("", "")


def of_spec(manager: str, *paths: str, time: str = "2026-01-01T00:00:05Z") -> dict[str, Any]:
    """An entry that owns these fields of `spec`, such as `weights.NodeAffinity`."""
    spec: dict[str, Any] = {}
    for path in paths:
        inner = spec
        for step in path.split("."):
            inner = inner.setdefault(f"f:{step}", {})
    return {"manager": manager, "time": time, "operation": "Update", "fieldsV1": {"f:spec": spec}}


@pytest.mark.parametrize(
    ("before", "after", "who"),
    [
        ({"weights": {"NodeAffinity": 1}}, {"weights": {"NodeAffinity": 2}}, "kubectl"),
        ({"weights": {"NodeAffinity": 1}, "paused": True}, {"weights": {"NodeAffinity": 1}, "paused": False}, "argocd"),
        ({"plugins": {"score": {"enabled": [{"name": "A"}]}}}, {"plugins": {"score": {"enabled": []}}}, "argocd"),
        ({"preset": "spread"}, {}, ""),  # nobody owns that
    ],
)
def test_two_changes_of_the_same_fields_within_a_second_leave_one_entry_and_have_one_author(
    before: dict[str, Any], after: dict[str, Any], who: str
) -> None:
    entries = [of_spec("argocd", "paused", "plugins.score"), of_spec("kubectl", "weights.NodeAffinity")]
    assert last_author(entries, entries, SpecChange(before, after, quick=True)).manager == who
    assert last_author(entries, entries, SpecChange(before, after, quick=False)) == Author("", "")


def test_of_several_owners_of_what_changed_the_latest_wrote_it() -> None:
    entries = [of_spec("late", "weights.A", time="2026-01-01T00:00:06Z"), of_spec("early", "weights.A")]
    change = SpecChange({"weights": {"A": 1}}, {"weights": {"A": 2}}, quick=True)
    assert last_author(entries, entries, change) == Author("late", "2026-01-01T00:00:06Z")


def test_names_and_labels_of_long_profiles_are_valid_and_distinct() -> None:
    long = [f"{'a.' * 120}{end}" for end in ("one", "two")]
    labels = [label_of(name) for name in long]
    names = [name_of(RecordedGeneration(profile=name, uid="u", generation=10**9)) for name in long]
    assert len(set(labels)) == len(set(names)) == 2
    assert all(len(label) <= 63 and label[0].isalnum() and label[-1].isalnum() for label in labels)
    assert all(len(name) <= 253 and ".." not in name and ".-" not in name for name in names)
    assert label_of("short.name") == "short.name"


def test_the_operator_s_namespace_is_the_pod_s(tmp_path: Any) -> None:
    file = tmp_path / "namespace"
    assert operator_namespace({}, file) == "placewright-system"
    file.write_text("mounted\n")
    assert operator_namespace({}, file) == "mounted"
    assert operator_namespace({"POD_NAMESPACE": "named"}, file) == "named"


def test_private_keys_are_left_out_and_put_back_by_url() -> None:
    spec = {"extenders": [{"urlPrefix": f"https://{name}", "tlsConfig": {"certData": "c", "keyData": name}} for name in "ab"]}
    kept = without_keys(spec)
    assert '"keyData": "a"' not in json.dumps(kept)
    assert with_keys_of(kept, {"extenders": list(reversed(spec["extenders"]))}) == (spec, [])
    whole, missing = with_keys_of(kept, {"extenders": spec["extenders"][:1]})
    assert (whole["extenders"][0], missing) == (spec["extenders"][0], ["https://b"])
