"""`python -m benchmarks reload`: the audit can tell a torn mixture, and a short run is sound; no test asserts a time."""

from __future__ import annotations

import dataclasses
import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import reload
from benchmarks.__main__ import main
from benchmarks.audit import SCORERS, Audit, distinct_weights
from benchmarks.reload import Reloads
from placewright.api.annotations import Decision
from placewright.api.profile import default_profile
from placewright.api.profilelimits import MAX_WEIGHT
from placewright.plugins.catalog import in_tree
from placewright.profiles.resolve import resolve

POINTS = st.dictionaries(st.sampled_from(SCORERS), st.integers(0, 100), max_size=len(SCORERS))
CHANGES = st.integers(0, 300)


def decision(generation: int, parts: dict[str, int]) -> Decision:
    return Decision(profile="p", generation=generation, score=sum(parts.values()), plugins=parts)


@given(points=POINTS, change=CHANGES)
def test_a_decision_of_one_generation_passes(points: dict[str, int], change: int) -> None:
    weights = distinct_weights(change)
    audit = Audit({7: weights})
    audit.look_at("web", decision(7, {plugin: score * weights[plugin] for plugin, score in points.items()}))
    assert (audit.torn, audit.proved) == ([], int(any(points.values())))


@given(points=POINTS.filter(lambda points: any(points.values())), change=CHANGES, other=CHANGES)
def test_a_decision_with_one_weight_of_another_generation_is_found(points: dict[str, int], change: int, other: int) -> None:
    weights = distinct_weights(change)
    parts = {plugin: score * weights[plugin] for plugin, score in points.items()}
    stray = next(plugin for plugin, score in points.items() if score)
    parts[stray] = points[stray] * distinct_weights(other)[stray]
    audit = Audit({7: weights})
    audit.look_at("web", decision(7, parts))
    assert bool(audit.torn) == (change != other)


def test_a_score_that_is_not_the_sum_of_its_parts_is_found() -> None:
    audit = Audit({7: distinct_weights(0)})
    audit.look_at("web", Decision(profile="p", generation=7, score=1, plugins={}))
    assert audit.torn == ["web: generation 7 does not explain the sum"]


def test_a_generation_that_nobody_applied_is_found() -> None:
    audit = Audit({})
    audit.look_at("web", decision(7, {}))
    assert audit.torn == ["web: generation 7 is none that was applied"]


def test_the_weights_of_a_thousand_changes_are_allowed_in_a_profile() -> None:
    weights = distinct_weights(1000)
    assert max(weights.values()) <= MAX_WEIGHT
    profile = default_profile(weights=weights)
    scoring = resolve(profile, in_tree()).weights
    assert scoring == {**weights, "DynamicResources": 2}, "these are all that score pods without claims by default"


def test_profiles_are_changed_while_pods_arrive_and_every_decision_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    # However slow the machine, nodes have room for all pods that arrive meanwhile: one that waited would be waited for.
    code = main(["reload", "--nodes", "20", "--rate", "60", "--reloads", "3", "-o", "json"])
    out, err = capsys.readouterr()
    (data,) = json.loads(out)
    assert (code, err) == (0, "")
    assert (data["reloads"], data["twice"], data["torn"]) == (3, 0, [])
    assert data["pods"] == data["bound"] == data["proved"] > 0
    assert 0 < data["p50"] <= data["p99"] <= data["longest"]


SOUND = Reloads(3, 300, 5, 0.010, 0.020, 0.030, 9, 9, 299.7, 0, 9, ())


@pytest.mark.parametrize(
    ("found", "code"),
    [({}, 0), ({"bound": 8}, 1), ({"twice": 1}, 1), ({"torn": ("web: generation 7 is none that was applied",)}, 1)],
)
def test_what_the_audit_found_decides_the_exit_code(
    found: dict[str, object], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def measure(*sizes: int) -> Reloads:
        assert sizes == (3, 300, 5)
        return dataclasses.replace(SOUND, **found)  # type: ignore[arg-type]

    monkeypatch.setattr(reload, "measure_reloads", measure)
    assert main(["reload", "--nodes", "3", "--reloads", "5"]) == code
    out, err = capsys.readouterr()
    assert "p50 s" in out
    assert ("web: generation 7" in err) == ("torn" in found)


def test_an_operator_that_does_not_get_going_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(reload, "_DEADLINE", 0.5)
    monkeypatch.setattr(reload, "operator_command", lambda _kubeconfig: [sys.executable, "-c", "print('no luck')"])
    assert main(["reload", "--nodes", "1", "--rate", "1", "--reloads", "1"]) == 1
    out, err = capsys.readouterr()
    assert (out, err) == (
        "", "placewright: no pod was decided under the newest profile in 0.5 s; the operator's log ends: no luck\n"
    )  # fmt: skip
