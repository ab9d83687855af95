"""The patch of a what-if change: what people copy and what is applied is the change that was evaluated, and no key is in sight."""

from __future__ import annotations

import json
import random
import shlex
from base64 import b64encode
from copy import deepcopy
from typing import Any

import pytest
import yaml

from console.makers import HOSTILE, Object
from kubesandbox.edits.patches import merge
from placewright.api.profile import DECIDING, SchedulingProfile, default_profile
from placewright.cli.profiles.profilewrites import merge_patch
from placewright.framework.registry import installed_plugins
from placewright.plugins.catalog import in_tree
from placewright.profiles.config import read_manifest
from placewright.profiles.effective import HIDDEN
from placewright.profiles.resolve import resolve
from placewright.profiles.validation import check_object
from placewright_lab.whatif.whatifpatch import (
    changed,
    kubectl_line,
    settable_weights,
    shadow_manifest,
    shown_spec,
    taken_along,
)
from seeds import seeds

REGISTRY = in_tree().with_installed(installed_plugins())
CERTIFICATE, KEY = (
    b64encode(f"-----BEGIN {kind}-----\nAAAA\n-----END {kind}-----\n".encode()).decode() for kind in ("CERTIFICATE", "PRIVATE KEY")
)
EXTENDER: Object = {"urlPrefix": "https://x.test", "filterVerb": "filter", "tlsConfig": {"certData": CERTIFICATE, "keyData": KEY}}


def a_profile(name: str = "default", **spec: Any) -> SchedulingProfile:
    content = {"schedulerName": "default-scheduler"} | spec
    about = {"apiVersion": "placewright.dev/v1alpha1", "kind": "SchedulingProfile", "metadata": {"name": name}}
    return read_manifest({**about, "spec": content})


def random_value(dice: random.Random, depth: int = 3) -> Any:
    if depth == 0 or dice.random() < 0.3:
        return dice.choice([0, 1, "text", True, False, [], ["a", {"b": 1}], ""])
    return {key: random_value(dice, depth - 1) for key in dice.sample(["a", "b", "c", "__proto__"], dice.randint(0, 3))}


@seeds(range(200), at_once=100)
def test_a_patch_of_the_difference_leads_from_one_value_to_the_other(seed: int) -> None:
    dice = random.Random(seed)
    before, after = ({"spec": random_value(dice)} for _ in range(2))
    patch = merge_patch(before, after)
    assert merge(deepcopy(before), patch) == after
    assert merge(deepcopy(before), {}) == before


def test_the_kubectl_line_is_read_by_a_shell_as_the_patch_and_nothing_else() -> None:
    patch = {"spec": {"pluginConfig": [{"name": 'it\'s "quoted" $(rm -rf ~) `id` \u202e\n\\', "args": {}}]}}
    line = kubectl_line("web.shop", patch)
    assert line.isascii() and line.isprintable()
    *command, body = shlex.split(line)
    assert command == ["kubectl", "patch", "schedulingprofile", "web.shop", "--type=merge", "-p"]
    assert json.loads(body) == patch


@pytest.mark.parametrize("name", [HOSTILE, "", "-f", "--all", "a b", "a;b", "a\nb", "UPPER", "$(id)", "a" * 254, "a..b", "\u202ea"])
def test_no_line_is_written_for_a_name_that_no_api_server_takes(name: str) -> None:
    assert kubectl_line(name, {"spec": {}}) == ""


def test_a_patch_has_the_changed_fields_alone_and_null_for_a_field_that_goes() -> None:
    base = a_profile(weights={"NodeResourcesFit": 5}, backoff={"initialSeconds": 2})
    made = changed(base, {"weights": {"ImageLocality": 3}, "backoff": None}, REGISTRY)
    told = taken_along(base, made, REGISTRY)
    assert told["patch"] == {"spec": {"weights": {"ImageLocality": 3}, "backoff": None}}
    assert yaml.safe_load(told["yaml"]) == told["patch"]
    assert told["differences"] == [["backoff.initialSeconds", 2, 1], ["weights.ImageLocality", 1, 3]]


def test_a_change_that_changes_nothing_has_no_patch() -> None:
    base = a_profile(weights={"NodeResourcesFit": 5})
    for changes in ({}, {"weights": {"NodeResourcesFit": 5}}, {"preset": None}):
        told = taken_along(base, changed(base, changes, REGISTRY), REGISTRY)
        assert (told["patch"], told["yaml"], told["kubectl"], told["shadow"]) == ({}, "", "", "")


def test_a_private_key_is_in_no_text_and_stays_where_its_extender_stays() -> None:
    base = a_profile(extenders=[EXTENDER])
    shown = shown_spec(base)
    assert KEY not in str(shown)
    made = changed(base, {"extenders": [*shown["extenders"], {"urlPrefix": "http://y.test", "filterVerb": "f"}]}, REGISTRY)
    assert made.problems == ()
    assert made.after["extenders"][0]["tlsConfig"]["keyData"] == KEY
    told = taken_along(base, made, REGISTRY)
    assert HIDDEN in told["yaml"] and HIDDEN in told["kubectl"]
    assert KEY not in str(told)


def test_what_may_not_change_is_refused_as_the_operator_refuses_it() -> None:
    base = a_profile()
    (problem,) = changed(base, {"schedulerName": "other"}, REGISTRY).problems
    assert (problem.path, "immutable" in problem.allowed) == ("spec.schedulerName", True)
    assert [each.path for each in changed(base, {"mode": "Shadow", "shadows": "x"}, REGISTRY).problems] == ["spec.mode"]


def test_problems_are_those_of_validation() -> None:
    base = a_profile()
    for changes in ({"weights": {"X": 1}}, {"backoff": {"maxSeconds": -1}}, {"preset": 3}, {"nonsense": 1}, {"plugins": {"score": [1]}}):
        made = changed(base, changes, REGISTRY)
        new = {"apiVersion": "placewright.dev/v1alpha1", "kind": "SchedulingProfile", "metadata": {"name": "default"}, "spec": made.after}
        assert list(made.problems) == check_object(new, None, REGISTRY)
        assert made.problems and made.profile is None


def test_a_shadow_tries_what_decides_and_passes_the_operators_checks() -> None:
    base = a_profile("a" * 253, weights={"NodeResourcesFit": 5}, backoff={"initialSeconds": 2})
    made = changed(base, {"preset": "spread", "paused": True}, REGISTRY)
    manifest = shadow_manifest(base, made)
    assert check_object(manifest, None, REGISTRY) == []
    assert manifest["spec"] == {"mode": "Shadow", "shadows": "a" * 253, "preset": "spread", "weights": {"NodeResourcesFit": 5}}
    assert len(manifest["metadata"]["name"]) == 253
    assert set(manifest["spec"]) - {"mode", "shadows"} <= set(DECIDING)


def test_a_default_profile_that_is_no_object_has_neither_line_nor_shadow() -> None:
    base = default_profile()
    told = taken_along(base, changed(base, {"preset": "spread"}, REGISTRY), REGISTRY)
    assert (told["patch"], told["kubectl"], told["shadow"]) == ({"spec": {"preset": "spread"}}, "", "")


def test_weights_that_can_be_set_are_those_of_plugins_that_score_or_that_a_zero_switches_off() -> None:
    plain = settable_weights(a_profile(), REGISTRY)
    assert plain == dict(resolve(a_profile(), REGISTRY).weights)
    packing = settable_weights(a_profile(preset="bin-packing", weights={"ImageLocality": 0, "DeviceFragmentation": 0}), REGISTRY)
    assert (packing["NodeResourcesFit"], packing["NodeResourcesBalancedAllocation"], packing["ImageLocality"]) == (5, 0, 0)
    assert "DeviceFragmentation" not in packing, "it does not run, so a weight would be refused"
    for name in packing:
        assert changed(a_profile(preset="bin-packing"), {"weights": {name: 4}}, REGISTRY).problems == ()
