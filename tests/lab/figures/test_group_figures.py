"""Figures of groups and of claims, from simulations whose outcome is clear."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml

from browser import tab
from lab.simulation.scenarios import a_node, a_pod, a_profile
from placewright.cli.main import main
from placewright.plugins.catalog import in_tree
from placewright_lab.figures.comparison import compare, rows_of
from placewright_lab.figures.figures import Figures, figures_of
from placewright_lab.report.page import page_of
from placewright_lab.simulation.outcome import Outcome
from placewright_lab.simulation.scenario import Scenario
from placewright_lab.simulation.simulation import simulate
from programs import needs

DRIVER, GPU, NIC = "devices.example.com", "gpu.example.com", "nic.example.com"


def group(name: str, members: int, cpu: str, there: int) -> list[dict[str, Any]]:
    """A PodGroup of so many members, of which some are there."""
    meta = {"labels": {"scheduling.x-k8s.io/pod-group": name}}
    declared = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "spec": {"minMember": members}}
    pods = [a_pod(f"{name}-{i}", cpu, meta=meta) for i in range(there)]
    return [{**declared, "metadata": {"name": name, "namespace": "default"}}, *pods]


def groups() -> list[dict[str, Any]]:
    """Make groups: one fits, two need three nodes, one waits for its members. One pod has no group."""
    return [
        a_node("n0"), a_node("n1"), *group("fits", 2, "1", 2), *group("large", 3, "3", 3), *group("as-large", 3, "3", 3),
        *group("early", 5, "1", 1), a_pod("single", "100m"),
    ]  # fmt: skip


def claims_and_pods() -> list[dict[str, Any]]:
    """Make three GPUs and a network card on a node. Two pods want two GPUs each, and one wants a card and a GPU."""
    names = [f"d{i}" for i in range(4)]
    devices = [{"name": name, "attributes": {"kind": {"string": "nic" if name == "d3" else "gpu"}}} for name in names]
    pool = {"name": "n0", "generation": 1, "resourceSliceCount": 1}
    api = {"apiVersion": "resource.k8s.io/v1"}
    made: list[dict[str, Any]] = [a_node("n0")]
    spec = {"driver": DRIVER, "nodeName": "n0", "pool": pool, "devices": devices}
    made.append({**api, "kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": spec})
    for name, kind in ((GPU, "gpu"), (NIC, "nic")):
        selectors = [{"cel": {"expression": f"device.attributes['{DRIVER}'].kind == '{kind}'"}}]
        made.append({**api, "kind": "DeviceClass", "metadata": {"name": name}, "spec": {"selectors": selectors}})
    card = [{"name": "n", "firstAvailable": [{"name": "card", "deviceClassName": NIC, "count": 1}]}]
    for name, gpus, more in (("a", 2, []), ("b", 2, []), ("c", 1, card)):
        requests = [{"name": "g", "exactly": {"deviceClassName": GPU, "count": gpus}}, *more]
        meta = {"name": name, "namespace": "default", "uid": f"claim-{name}"}
        made.append({**api, "kind": "ResourceClaim", "metadata": meta, "spec": {"devices": {"requests": requests}}})
        made.append(a_pod(name, resourceClaims=[{"name": "x", "resourceClaimName": name}]))
    return made


def played(objects: list[dict[str, Any]]) -> Outcome:
    return simulate(Scenario("a test", objects=objects), a_profile(), in_tree())


def figures(objects: list[dict[str, Any]]) -> Figures:
    return figures_of(played(objects))


def test_groups_are_placed_pending_or_incomplete() -> None:
    found = figures(groups()).groups
    assert found is not None
    assert (found.groups, found.placed, found.pending) == (4, 1, 3)
    assert sum(found.reasons.values()) == 3
    (most, count), *_ = found.reasons.items()
    assert most.startswith("needs 2 more members placed: 2 lack cpu")
    assert count == 2
    pods = {reason.what: reason.pods for reason in figures(groups()).reasons}
    assert pods[f"its group {most}"] == 6  # members of both, whatever their groups are called
    assert any("spec.minMember is 5, but there is 1 pod of it" in what for what in found.reasons)


def test_a_group_of_which_too_few_have_a_node_is_not_placed() -> None:
    """A profile without GangScheduling places members one by one."""
    singly = a_profile(plugins={"multiPoint": {"disabled": [{"name": "GangScheduling"}]}})
    found = figures_of(simulate(Scenario("a test", objects=[a_node("n0"), *group("large", 3, "3", 3)]), singly, in_tree()))
    assert found.placed == 1
    assert found.groups is not None
    assert (found.groups.placed, found.groups.pending) == (0, 1)
    assert list(found.groups.reasons) == ["Insufficient cpu"]


def test_devices_are_counted_by_driver_and_class_whichever_way_the_claim_names_it() -> None:
    found = figures(claims_and_pods()).claims
    assert found is not None
    assert (found.claims, found.allocated) == (3, 2)
    assert found.devices == {(DRIVER, GPU): 3, (DRIVER, NIC): 1}


def test_where_there_are_neither_there_are_no_rows() -> None:
    outcome = played([a_node("n0"), a_pod("p")])
    labels = {row.group for row in rows_of(compare("x", [outcome]))}
    assert (figures_of(outcome).groups, figures_of(outcome).claims) == (None, None)
    assert not [label for label in labels if "Groups" in label or "Claims" in label]


def test_the_comparison_has_rows_of_both_in_every_form() -> None:
    outcome = played([*groups(), *claims_and_pods()[1:]])
    comparison = compare("x", [outcome, outcome])
    rows = {(row.group, row.label): row.values for row in rows_of(comparison)}
    assert rows["Groups of pods", "placed"] == (1, 1)
    assert rows["Groups of pods", "pending"] == (3, 3)
    assert rows["Claims to devices, at the end", "with devices"] == (2, 2)
    assert rows["Claims to devices, at the end", f"devices of {DRIVER}, class {GPU}"] == (3, 3)
    page = page_of(comparison)
    for text in ("Groups of pods", "Groups pending, and why", "Claims to devices, at the end", f"devices of {DRIVER}, class {NIC}"):
        assert text in page


@needs("chromium")
async def test_a_browser_shows_the_rows(chromium: int, tmp_path: Path) -> None:
    outcome = await asyncio.to_thread(played, [*groups(), *claims_and_pods()[1:]])
    file = tmp_path / "report.html"
    file.write_text(page_of(compare("x", [outcome, outcome])), encoding="utf-8")
    async with tab(chromium) as page:
        await page.show(file)
        text = await page.run("document.body.innerText")
    assert f"devices of {DRIVER}, class {GPU}" in text
    assert "more members placed: " in text


def test_the_command_says_how_many_groups_are_placed_and_which_devices_are_given_out(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump_all([*groups(), *claims_and_pods()[1:]]), encoding="utf-8")
    assert main(["simulate", "-f", str(file)]) == 0
    out = capsys.readouterr().out
    assert ": 1 of 4 placed, 3 pending" in out
    assert f"     3  devices of {DRIVER}, class {GPU}" in out
