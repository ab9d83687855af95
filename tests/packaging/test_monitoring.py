"""The dashboard and the alerts: every name in them is exported, every alert fires when it should, and a real Prometheus agrees."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from placewright.observability.metrics import MetricKind, families
from placewright.profiles.profilestate import Reason
from programs import needs

ROOT = Path(__file__).parents[2]
MONITORING = ROOT / "manifests" / "components" / "monitoring"
RULES = yaml.safe_load((MONITORING / "rules.yaml").read_text(encoding="utf-8"))["spec"]
ALERTS: list[dict[str, Any]] = [rule for group in RULES["groups"] for rule in group["rules"]]
DASHBOARD = json.loads((MONITORING / "dashboard.json").read_text(encoding="utf-8"))

#: What Prometheus adds to every series, and what its own libraries export for a process.
ADDED = {"job", "instance"}
OF_THE_PROCESS = {"up": set[str](), "process_cpu_seconds_total": set[str](), "process_resident_memory_bytes": set[str]()}


def exported() -> dict[str, set[str]]:
    """By name of a series, the labels it has."""
    found = dict(OF_THE_PROCESS)
    for family in families():
        labels = set(family.labels)
        if family.kind is MetricKind.HISTOGRAM:
            found |= {f"{family.name}_bucket": labels | {"le"}, f"{family.name}_sum": labels, f"{family.name}_count": labels}
        else:
            found[family.name] = labels
    return found


def expressions() -> Iterator[tuple[str, str]]:
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]
    for alert in ALERTS:
        yield alert["alert"], alert["expr"]


def series_of(expression: str) -> list[tuple[str, set[str]]]:
    """(name, labels that it is asked by) of every selector; each of ours has braces."""
    return [(name, set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers))) for name, matchers in re.findall(r"(\w+)\{([^}]*)\}", expression)]


@pytest.mark.parametrize(("where", "expression"), [pytest.param(*each, id=f"{each[0]}: {each[1][:40]}") for each in expressions()])
def test_every_series_in_a_query_is_exported_with_these_labels(where: str, expression: str) -> None:
    known = exported()
    asked = series_of(expression)
    assert asked, f"{where}: no selector in {expression}"
    assert [name for name, _ in asked if name not in known] == []
    assert {name: labels - known[name] - ADDED for name, labels in asked if labels - known[name] - ADDED} == {}
    grouped = {label.strip() for labels in re.findall(r"by \(([^)]*)\)", expression) for label in labels.split(",")}
    assert grouped <= ADDED.union(*(known[name] for name, _ in asked))


def test_every_selector_names_the_job() -> None:
    without = [(where, name) for where, expression in expressions() for name, labels in series_of(expression) if "job" not in labels]
    assert without == []


def test_the_dashboard_is_what_its_panels_come_to() -> None:
    command = [sys.executable, MONITORING / "dashboard.py", "--check"]
    checked = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_panels_do_not_lie_on_each_other_and_have_numbers_of_their_own() -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24, panel["title"]
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert (x, y) not in taken, f"{panel['title']} lies on {taken[x, y]}"
                taken[x, y] = panel["title"]
    identities = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(identities)) == len(identities)


def test_the_dashboard_has_no_identity_and_no_data_source_of_its_own() -> None:
    assert DASHBOARD.keys().isdisjoint({"id", "uid"})
    sources = {target["datasource"]["uid"] for panel in DASHBOARD["panels"] for target in panel.get("targets", ())}
    assert sources == {"${datasource}"}


@pytest.mark.parametrize("alert", ALERTS, ids=[alert["alert"] for alert in ALERTS])
def test_an_alert_leads_to_its_paragraph_in_the_runbook(alert: dict[str, Any]) -> None:
    page, _, anchor = alert["annotations"]["runbook_url"].partition("#")
    assert page.endswith("/docs/runbook.md")
    headings = re.findall(r"^## (.*)$", (ROOT / "docs" / "runbook.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert anchor in {heading.lower() for heading in headings}


def test_the_reason_that_an_alert_passes_over_is_one_that_profiles_have() -> None:
    named = {reason for alert in ALERTS for reason in re.findall(r'reason!="(\w+)"', alert["expr"])}
    assert named == {Reason.PAUSED.value}


# --- promtool -----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def rules_file(tmp_path: Path) -> Path:
    file = tmp_path / "rules.yml"
    file.write_text(yaml.safe_dump(RULES), encoding="utf-8")
    return file


@needs("promtool")
def test_promtool_finds_nothing_wrong_with_the_rules(rules_file: Path) -> None:
    checked = subprocess.run(["promtool", "check", "rules", rules_file], capture_output=True, text=True, timeout=60, check=False)
    assert (checked.returncode, f"{len(ALERTS)} rules found" in checked.stdout) == (0, True), checked.stdout + checked.stderr


class Story(NamedTuple):
    """What Prometheus sees, a sample a minute, and when an alert is silent and when it fires."""

    alert: str
    series: dict[str, str]
    silent: str
    fires: str
    summary: str
    labels: dict[str, str] = {"job": "placewright"}  # noqa: RUF012 - never written


ATTEMPTS = 'scheduler_schedule_attempts_total{job="placewright", profile="p", '
LEADER = 'placewright_leader{job="placewright", instance='
READY = 'placewright_profile_ready{job="placewright", instance='
WITHOUT = 'placewright_pods_without_profile{job="placewright", instance='
GIVEN_UP = 'placewright_given_up_pods{job="placewright", instance='
FAILURES = 'placewright_plugin_failures_total{job="placewright", instance='
SLOW = 'scheduler_scheduling_algorithm_duration_seconds_bucket{job="placewright", le='
STORIES = (
    Story(
        "PlacewrightDown", {'up{job="placewright", instance="a"}': "1x10 0x30"}, "12m", "20m",
        "No replica of Placewright answers; pods of its profiles wait.", {},
    ),
    Story(
        "PlacewrightNoLeader",
        {LEADER + '"a"}': "1x10 0x30", LEADER + '"b"}': "0x40"},
        "10m", "13m", "No replica of Placewright leads; pods of its profiles wait.",
    ),
    Story(
        "PlacewrightTwoLeaders",
        {LEADER + '"a"}': "1x40", LEADER + '"b"}': "0x5 1 0x4 1x30"},
        "7m", "15m", "2 replicas of Placewright say that they lead.",
    ),
    Story(
        "PlacewrightLeadChangesHands",
        {
            'placewright_leader_terms_total{job="placewright", instance="a"}': "1x20 1+1x40",
            'placewright_leader_terms_total{job="placewright", instance="b"}': "0x5 1x15 1+1x40",
        },
        "22m", "40m", "The lead was taken 20 times in ten minutes; what takes longer than a term never ends.",
    ),
    Story(
        "PlacewrightNothingIsPlaced",
        {
            'scheduler_pending_pods{job="placewright", queue="active"}': "0x5 7x40",
            ATTEMPTS + 'result="scheduled"}': "0+60x10 600x40",
        },
        "10m", "25m", "Pods wait to be tried, and none is.",
    ),
    Story(
        "PlacewrightAPIServerAway", {'placewright_api_server_away_seconds{job="placewright", instance="a"}': "0x5 30 0+60x30"},
        "7m", "11m", "The API server has not answered a replica of Placewright for 4m 0s.",
    ),
    Story(
        "PlacewrightProfileNotInEffect",
        {
            READY + '"a", profile="p", scheduler_name="s", reason="InvalidProfile"}': "1x5 0x30",
            READY + '"a", profile="q", scheduler_name="t", reason="Paused"}': "0x40",
            READY + '"b", profile="p", scheduler_name="s", reason="Applying"}': "0x40",
            LEADER + '"a"}': "1x40",
            LEADER + '"b"}': "0x40",
        },
        "9m", "15m", "The newest generation of the profile p is not in effect (InvalidProfile).",
        {"job": "placewright", "instance": "a", "profile": "p", "scheduler_name": "s", "reason": "InvalidProfile"},
    ),
    Story(
        "PlacewrightPodsWithoutProfile",
        {
            WITHOUT + '"a", scheduler_name="batch", reason="deleted"}': "0x5 12x30",
            WITHOUT + '"b", scheduler_name="web", reason="misspelt"}': "3x40",
            LEADER + '"a"}': "1x40",
            LEADER + '"b"}': "0x40",
        },
        "7m", "9m", "12 pods wait that no profile takes (schedulerName batch, deleted).",
        {"job": "placewright", "scheduler_name": "batch", "reason": "deleted"},
    ),
    Story(
        "PlacewrightPluginFails",
        {
            FAILURES + '"a", profile="p", plugin="Boom", extension_point="Filter"}': "0x5 0+6x30",
            FAILURES + '"a", profile="p", plugin="Fine", extension_point="Score"}': "3x40",
        },
        "9m", "13m", "The plugin Boom of the profile p fails at Filter.",
        {"job": "placewright", "profile": "p", "plugin": "Boom", "extension_point": "Filter"},
    ),
    Story(
        "PlacewrightQueueGrows", {'scheduler_pending_pods{job="placewright", queue="active"}': "200x20 200+10x60"},
        "20m", "60m", "590 pods wait to be tried, and they become more.",
    ),
    Story(
        "PlacewrightErrors",
        {ATTEMPTS + 'result="scheduled"}': "0+90x60", ATTEMPTS + 'result="error"}': "0x20 0+10x60"},
        "20m", "50m", "10% of all attempts end with an error.",
    ),
    Story(
        "PlacewrightSlow",
        {
            SLOW + '"0.256"}': "0+10x20 200x60", SLOW + '"0.512"}': "0+10x20 200x60",
            SLOW + '"1.024"}': "0+10x60", SLOW + '"+Inf"}': "0+10x60",
        },
        "20m", "55m", "Choosing a node takes 1.019s (p99).",
    ),
    Story(
        "PlacewrightBindingsUnresolved", {'placewright_bindings_unresolved{job="placewright", instance="a"}': "0x5 2x30"},
        "14m", "17m", "Of 2 Bindings nobody knows whether they exist.",
    ),
    Story(
        "PlacewrightGroupWaits",
        {
            'placewright_pod_groups_oldest_waiting_seconds{job="placewright", instance="a"}': "0+60x100",
            'placewright_pod_groups_oldest_waiting_seconds{job="placewright", instance="b"}': "9000x100",
            'placewright_leader{job="placewright", instance="a"}': "1x100",
            'placewright_leader{job="placewright", instance="b"}': "0x100",
        },
        "64m", "70m", "A group of pods has waited for 1h 10m 0s, and none of its members has a node.",
    ),
    Story(
        "PlacewrightSuspectPods",
        {
            'placewright_suspect_pods{job="placewright", instance="a"}': "0x10 3x20",
            'placewright_suspect_pods{job="placewright", instance="b"}': "9x30",
            'placewright_leader{job="placewright", instance="a"}': "1x30",
            'placewright_leader{job="placewright", instance="b"}': "0x30",
        },
        "10m", "14m", "3 pods wait because deciding one like them ended a replica.",
    ),
    Story(
        "PlacewrightPodsGivenUp",
        {
            GIVEN_UP + '"a", profile="batch"}': "0x10 3x20",
            GIVEN_UP + '"b", profile="batch"}': "9x30",
            GIVEN_UP + '"a", profile="web"}': "0x30",
            LEADER + '"a"}': "1x30",
            LEADER + '"b"}': "0x30",
        },
        "14m", "17m", "3 pods have waited longer than the profile batch allows.", {"job": "placewright", "profile": "batch"},
    ),
    Story(
        "PlacewrightRepairs", {'placewright_reconciler_repairs_total{job="placewright", kind="missed"}': "0x60 0+1x60"},
        "65m", "115m",
        "What was believed of the cluster was wrong 54 times in an hour (missed), and put right.",
        {"job": "placewright", "kind": "missed"},
    ),
    Story(
        "PlacewrightMissingHint", {'scheduler_pod_scheduled_after_flush_total{job="placewright"}': "0x60 3x60"},
        "55m", "70m", "3 pods fitted when only the long timeout tried them again.",
    ),
    Story(
        "PlacewrightForgottenPods", {'placewright_forgotten_pods_total{job="placewright", plugin="NodePorts"}': "0x60 3x60"},
        "55m", "70m", "3 pods waited although they would have fitted; the hint of NodePorts slept.",
        {"job": "placewright", "plugin": "NodePorts"},
    ),
)  # fmt: skip


@needs("promtool")
@pytest.mark.parametrize("story", STORIES, ids=[story.alert for story in STORIES])
def test_an_alert_fires_when_it_should_and_is_silent_before(story: Story, rules_file: Path) -> None:
    [rule] = [alert for alert in ALERTS if alert["alert"] == story.alert]
    told = {
        "exp_labels": {"severity": rule["labels"]["severity"], **story.labels},
        "exp_annotations": {"summary": story.summary, "runbook_url": rule["annotations"]["runbook_url"]},
    }
    case = {
        "interval": "1m",
        "input_series": [{"series": series, "values": values} for series, values in story.series.items()],
        "alert_rule_test": [
            {"alertname": story.alert, "eval_time": story.silent, "exp_alerts": []},
            {"alertname": story.alert, "eval_time": story.fires, "exp_alerts": [told]},
        ],
    }
    file = rules_file.with_name("tests.yml")
    file.write_text(yaml.safe_dump({"rule_files": [rules_file.name], "evaluation_interval": "1m", "tests": [case]}), encoding="utf-8")
    tested = subprocess.run(["promtool", "test", "rules", file], capture_output=True, text=True, timeout=60, check=False)
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_each_alert_has_its_story() -> None:
    assert [story.alert for story in STORIES] == [alert["alert"] for alert in ALERTS]
