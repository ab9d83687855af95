"""`placewright profiles set` and `rollback`: what is written, in whose name, and what is not."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.stage import new_stage, operator
from placewright.cli.profiles import profilewrites
from placewright.cli.profiles.profilewrites import merge_patch
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient

from .profile_desk import Desk

PATH = "/apis/placewright.dev/v1alpha1/schedulingprofiles/default"


@pytest.fixture
async def desk(capsys: pytest.CaptureFixture[str]) -> AsyncIterator[Desk]:
    """A profile, a place for its history, and nobody at work."""
    async with new_stage() as stage:
        made = Desk(stage.nodes(1).profile(), capsys)
        made.namespace()
        yield made


def weights(desk: Desk) -> Any:
    return desk.stage.show_profile()["spec"].get("weights")


def generation(desk: Desk) -> int:
    return int(desk.stage.show_profile()["metadata"]["generation"])


async def written_by(desk: Desk, manager: str, **spec: Any) -> None:
    """Somebody else changes the profile."""
    async with ApiClient(load_config(str(desk.stage.sandbox.kubeconfig))) as client:
        await client.patch(PATH, {"spec": spec}, {"fieldManager": manager})


# --- set -------------------------------------------------------------------------------------------------------------------------


async def test_set_writes_by_server_side_apply_and_says_that_it_took(desk: Desk) -> None:
    async with operator(desk.stage):
        await desk.until_judged("default", 1)
        ran = await desk("set", "default", "NodeAffinity=5", "ImageLocality=0")
    assert ran.code == 0
    assert weights(desk) == {"NodeAffinity": 5, "ImageLocality": 0}
    assert "profile default: weights.NodeAffinity: 2 → 5" in ran.out
    assert "generation 2 is judged: Active" in ran.out
    entries = desk.stage.show_profile()["metadata"]["managedFields"]
    assert [each["operation"] for each in entries if each["manager"] == "placewright-cli"] == ["Apply"]


async def test_set_keeps_what_it_had_set_before_and_what_others_have(desk: Desk) -> None:
    await written_by(desk, "kubectl", weights={"TaintToleration": 4})
    await desk("set", "default", "NodeAffinity=5", "--wait", "0")
    await desk("set", "default", "ImageLocality=3", "--wait", "0")
    assert weights(desk) == {"TaintToleration": 4, "NodeAffinity": 5, "ImageLocality": 3}


async def test_a_weight_that_was_set_can_be_taken_back(desk: Desk) -> None:
    await desk("set", "default", "NodeAffinity=5", "ImageLocality=3", "--wait", "0")
    await desk("set", "default", "NodeAffinity-", "--wait", "0")
    assert weights(desk) == {"ImageLocality": 3}
    await desk("set", "default", "ImageLocality-", "--wait", "0")
    assert not weights(desk)


async def test_a_weight_of_another_manager_is_left_alone_unless_forced(desk: Desk) -> None:
    await written_by(desk, "argocd-controller", weights={"NodeAffinity": 4, "ImageLocality": 2})
    refused = await desk("set", "default", "NodeAffinity=5", "--wait", "0")
    assert refused.code == 2
    assert 'conflict with "argocd-controller"' in refused.err
    assert "--force-conflicts" in refused.err
    assert len(refused.err.splitlines()) == 1
    taken_away = await desk("set", "default", "NodeAffinity-", "--wait", "0")
    assert taken_away.code == 2
    assert "spec.weights.NodeAffinity: held by other managers" in taken_away.err
    assert (weights(desk), generation(desk)) == ({"NodeAffinity": 4, "ImageLocality": 2}, 2)
    forced = await desk("set", "default", "NodeAffinity=5", "--force-conflicts", "--wait", "0")
    assert "argocd-controller manages this profile, too: it may put back what Git has" in forced.err
    assert weights(desk) == {"NodeAffinity": 5, "ImageLocality": 2}
    await desk("set", "default", "ImageLocality-", "--force-conflicts", "--wait", "0")
    assert weights(desk) == {"NodeAffinity": 5}


@pytest.mark.parametrize("person", ["kubectl", "kubectl-create", "kubectl-client-side-apply", "kubectl-edit", "kubectl-patch"])
async def test_what_a_person_wrote_with_kubectl_is_taken_over(desk: Desk, person: str) -> None:
    await written_by(desk, person, weights={"NodeAffinity": 4, "ImageLocality": 2})
    changed = await desk("set", "default", "NodeAffinity=5", "--wait", "0")
    assert (changed.code, changed.err, weights(desk)) == (0, "", {"NodeAffinity": 5, "ImageLocality": 2})
    removed = await desk("set", "default", "ImageLocality-", "--wait", "0")
    assert (removed.code, removed.err, weights(desk)) == (0, "", {"NodeAffinity": 5})


async def test_a_field_that_a_person_and_a_controller_hold_is_not_taken_from_the_controller(desk: Desk) -> None:
    await written_by(desk, "kubectl-edit", weights={"NodeAffinity": 4})
    await written_by(desk, "argocd-controller", weights={"ImageLocality": 2})
    assert (await desk("set", "default", "NodeAffinity=5", "--wait", "0")).code == 0
    assert (await desk("set", "default", "ImageLocality=5", "--wait", "0")).code == 2
    assert (await desk("set", "default", "ImageLocality-", "--wait", "0")).code == 2
    assert weights(desk) == {"NodeAffinity": 5, "ImageLocality": 2}


@pytest.mark.parametrize("dry_run", ["client", "server"])
async def test_a_dry_run_says_what_it_would_do_and_writes_nothing(desk: Desk, dry_run: str) -> None:
    before = desk.stage.show_profile()
    ran = await desk("set", "default", "NodeAffinity=5", "--dry-run", dry_run)
    assert (ran.code, desk.stage.show_profile()) == (0, before)
    assert "weights.NodeAffinity: 2 → 5" in ran.out
    assert ran.out.endswith(f"nothing was written: dry run by the {dry_run}\n")


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("NodeAfinity=5", "spec.weights.NodeAfinity: found \"NodeAfinity\"; allowed a known plugin (did you mean 'NodeAffinity'?)"),
        ("NodeName=5", "spec.weights.NodeName: "),
        ("NodeAffinity=100001", "weight: found 'NodeAffinity=100001'; allowed PLUGIN=WEIGHT with a weight from 0"),
        ("NodeAffinity", "weight: found 'NodeAffinity'; allowed PLUGIN=WEIGHT"),
        ("NodeAffinity=-1", "weight: found 'NodeAffinity=-1'; allowed PLUGIN=WEIGHT"),
    ],
)
async def test_what_could_not_take_effect_is_not_written(desk: Desk, word: str, said: str) -> None:
    ran = await desk("set", "default", word)
    assert ran.code == 2
    assert said in ran.err
    assert generation(desk) == 1


async def test_what_changes_nothing_is_not_written(desk: Desk) -> None:
    await written_by(desk, "kubectl", weights={"NodeAffinity": 5})
    ran = await desk("set", "default", "NodeAffinity=5")
    assert (ran.code, ran.out) == (0, "profile default: nothing to change\n")


async def test_a_generation_that_does_not_take_is_exit_code_1(desk: Desk) -> None:
    desk.stage.profile("younger")
    async with operator(desk.stage):
        await desk.until_judged("younger", 1)
        ran = await desk("set", "younger", "NodeAffinity=5")
    assert ran.code == 1
    assert "generation 2 is judged: SchedulerNameTaken" in ran.out


async def test_where_no_operator_says_anything_that_is_said(desk: Desk) -> None:
    ran = await desk("set", "default", "NodeAffinity=5", "--wait", "1")
    assert ran.code == 1
    assert ran.out.endswith("generation 2 is written; no operator has said within 1 s whether it took\n")


async def test_an_old_mistake_is_not_held_against_a_change(desk: Desk) -> None:
    desk.stage.write_profile_unchecked(weights={"Nonsense": 1})
    assert (await desk("set", "default", "NodeAffinity=5", "--wait", "0")).code == 0
    assert weights(desk) == {"Nonsense": 1, "NodeAffinity": 5}


async def test_whoever_may_not_write_gets_the_api_server_s_word(desk: Desk) -> None:
    reader = desk.somebody("reader", [("placewright.dev", "schedulingprofiles", ["get"])])
    ran = await reader("set", "default", "NodeAffinity=5")
    assert ran.code == 2
    assert "403 Forbidden" in ran.err
    assert len(ran.err.splitlines()) == 1


# --- rollback --------------------------------------------------------------------------------------------------------------------


async def test_rollback_goes_back_to_what_was_before(desk: Desk) -> None:
    async with operator(desk.stage):
        await desk.until_recorded(1)
        before = desk.stage.show_profile()["spec"]
        await desk("set", "default", "NodeAffinity=5")
        await desk.until_recorded(2)
        ran = await desk("rollback", "default")
        assert (ran.code, desk.stage.show_profile()["spec"]) == (0, before)
        assert "weights.NodeAffinity: 5 → 2" in ran.out
        await desk.until_recorded(3)
        again = await desk("rollback", "default")
        assert (again.code, weights(desk)) == (0, {"NodeAffinity": 5})


async def test_rollback_writes_and_owns_only_what_differs(desk: Desk) -> None:
    async with operator(desk.stage):
        await desk.until_recorded(1)
        await written_by(desk, "kubectl", weights={"ImageLocality": 4}, preset="spread")
        await desk.until_recorded(2)
        await desk("set", "default", "NodeAffinity=5")
        await desk.until_recorded(3)
        await written_by(desk, "kubectl", preset="bin-packing")
        await desk.until_recorded(4)
        ran = await desk("rollback", "default", "--to-revision", "2", "--force-conflicts")
    spec = desk.stage.show_profile()["spec"]
    assert (ran.code, spec["preset"], spec["weights"]) == (0, "spread", {"ImageLocality": 4})
    (line,) = [line for line in ran.out.splitlines() if "kubectl" in line and "{" in line]
    assert not any(name in line for name in ("backoff", "paused", '"mode"', "schedulerName"))
    assert owned_by_us(desk) == {"f:preset": {}}


@pytest.mark.parametrize("meanwhile", ["status", "spec"])
async def test_a_status_written_meanwhile_is_no_conflict_and_another_generation_is(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    desk.record("default", 1, desk.stage.show_profile()["spec"])
    await written_by(desk, "kubectl", preset="spread")
    send, sent = profilewrites.merge_profile, 0

    async def late(*asked: Any, **named: Any) -> Any:
        nonlocal sent
        sent += 1
        if sent <= 2 and meanwhile == "status":
            desk.stage.edit_status(lambda status: status.update(observedGeneration=sent))
        if sent == 2 and meanwhile == "spec":
            await written_by(desk, "kubectl", preset="bin-packing")
        return await send(*asked, **named)

    monkeypatch.setattr(profilewrites, "merge_profile", late)
    ran = await desk("rollback", "default", "--to-revision", "1", "--wait", "0", "--force-conflicts")
    if meanwhile == "status":
        assert (ran.code, ran.err) == (0, "")
        assert "preset" not in desk.stage.show_profile()["spec"]
    else:
        assert (ran.code, desk.stage.show_profile()["spec"]["preset"]) == (2, "bin-packing")
        assert "the object has been modified" in ran.err


async def test_rollback_to_other_items_of_a_list_owns_these_items_alone(desk: Desk) -> None:
    fit = {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}
    spread = {"name": "PodTopologySpread", "args": {"defaultingType": "List"}}
    desk.record("default", 1, {**desk.stage.show_profile()["spec"], "pluginConfig": [fit, spread]})
    await written_by(desk, "kubectl", pluginConfig=[fit])
    ran = await desk("rollback", "default", "--to-revision", "1", "--wait", "0", "--force-conflicts")
    assert ran.code == 0, ran.err
    assert [each["name"] for each in desk.stage.show_profile()["spec"]["pluginConfig"]] == ["NodeResourcesFit", "PodTopologySpread"]
    assert [name for name in owned_by_us(desk)["f:pluginConfig"] if name.startswith("k:")] == ['k:{"name":"PodTopologySpread"}']


def owned_by_us(desk: Desk) -> dict[str, Any]:
    """The fields of `spec` that server-side apply holds for us."""
    entries = desk.stage.show_profile()["metadata"]["managedFields"]
    found = [each["fieldsV1"]["f:spec"] for each in entries if (each["manager"], each["operation"]) == ("placewright-cli", "Apply")]
    return {name: value for each in found for name, value in each.items() if name != "."}


async def test_rollback_of_a_refused_generation_goes_to_the_one_in_effect(desk: Desk) -> None:
    async with operator(desk.stage):
        await desk.until_recorded(1)
        await desk("set", "default", "NodeAffinity=5")
        await desk.until_recorded(2)
        await written_by(desk, "kubectl", weights={"Nonsense": 1})
        await desk.until_recorded(3)
        ran = await desk("rollback", "default", "--force-conflicts")
    assert ran.code == 0
    assert weights(desk) == {"NodeAffinity": 5}


async def test_rollback_takes_away_what_the_revision_did_not_have_also_in_lists(desk: Desk) -> None:
    spec = {"schedulerName": "placewright", "plugins": {"score": {"enabled": [{"name": "NodeAffinity", "weight": 3}]}}}
    desk.record("default", 1, spec)
    both = [{"name": "NodeAffinity", "weight": 3}, {"name": "ImageLocality", "weight": 9}]
    await written_by(desk, "kustomize-controller", plugins={"score": {"enabled": both}}, percentageOfNodesToScore=50)
    refused = await desk("rollback", "default", "--wait", "0")
    assert refused.code == 2
    assert "--force-conflicts" in refused.err
    ran = await desk("rollback", "default", "--force-conflicts", "--wait", "0")
    now = desk.stage.show_profile()["spec"]
    assert now["plugins"]["score"]["enabled"] == [{"name": "NodeAffinity", "weight": 3}]
    assert "percentageOfNodesToScore" not in now
    assert "kubectl patch schedulingprofiles default --type=merge" in ran.out.replace(f"--kubeconfig={desk.stage.sandbox.kubeconfig} ", "")


async def test_rollback_to_a_revision_by_its_number(desk: Desk) -> None:
    for number in (1, 2, 3):
        desk.record("default", number, {"schedulerName": "placewright", "weights": {"NodeAffinity": number}})
    await desk("rollback", "default", "--to-revision", "2", "--wait", "0")
    assert weights(desk) == {"NodeAffinity": 2}
    unknown = await desk("rollback", "default", "--to-revision", "9")
    assert unknown.err == "placewright: error: profile default: found revision 9; allowed 1, 2, 3\n"


async def test_nobody_goes_back_to_what_never_took(desk: Desk) -> None:
    desk.record("default", 1, {"schedulerName": "placewright", "weights": {"Nonsense": 1}}, result="InvalidProfile")
    ran = await desk("rollback", "default", "--to-revision", "1")
    assert ran.err == "placewright: error: profile default: revision 1 never took: so it is\n"
    none = await desk("rollback", "default")
    assert none.code == 2
    assert "found no earlier revision that took" in none.err
    assert generation(desk) == 1


async def test_without_the_history_rollback_says_which_right_is_missing_and_writes_nothing(desk: Desk) -> None:
    editor = desk.somebody("editor", [("placewright.dev", "schedulingprofiles", ["get", "list", "patch"])])
    ran = await editor("rollback", "default")
    assert ran.code == 2
    assert "the right to list controllerrevisions.apps" in ran.err
    assert generation(desk) == 1


async def test_a_private_key_that_is_not_in_the_history_is_the_one_of_the_profile(desk: Desk) -> None:
    tls = {"certData": "YQ==", "keyData": "(not kept)"}
    extender = {"urlPrefix": "https://x.test", "filterVerb": "filter", "enableHTTPS": True, "tlsConfig": tls}
    desk.record("default", 1, {"schedulerName": "placewright", "extenders": [extender], "weights": {"NodeAffinity": 7}})
    ran = await desk("rollback", "default", "--wait", "0")
    assert "extender https://x.test: its private key is neither in the history nor in the profile" in ran.err
    now = {**extender, "tlsConfig": {**tls, "keyData": "c2VjcmV0"}}
    desk.stage.write_profile_unchecked(extenders=[now])
    ran = await desk("rollback", "default", "--wait", "0", "--force-conflicts")
    assert "c2VjcmV0" not in ran.out + ran.err
    assert desk.stage.show_profile()["spec"]["extenders"][0]["tlsConfig"]["keyData"] == "c2VjcmV0"
    assert weights(desk) == {"NodeAffinity": 7}


# --- the patch -------------------------------------------------------------------------------------------------------------------

VALUES = st.recursive(
    st.integers(0, 3) | st.text("ab", max_size=2) | st.lists(st.integers(0, 2), max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
)
OBJECTS = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)


def patched(value: Any, patch: Any) -> Any:
    """RFC 7386, section 2, as it is written there."""
    if not isinstance(patch, dict):
        return patch
    result = dict(value) if isinstance(value, dict) else {}
    for name, part in patch.items():
        if part is None:
            result.pop(name, None)
        else:
            result[name] = patched(result.get(name), part)
    return result


@given(OBJECTS, OBJECTS)
def test_a_merge_patch_leads_from_one_value_to_the_other(before: dict[str, Any], after: dict[str, Any]) -> None:
    patch = merge_patch(before, after)
    assert patched(before, patch) == after
    assert (patch == {}) is (before == after)
    assert json.loads(json.dumps(patch)) == patch
