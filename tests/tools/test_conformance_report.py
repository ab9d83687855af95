"""What a run of upstream's specs is told as: JUnit of both versions of Ginkgo, the list of what is left out, and the lines printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.conformance.specs import (
    LEFT_OUT,
    SpecOutcome,
    SpecVerdict,
    UnreadableReport,
    lines,
    numbers,
    read_report,
    reason_to_leave_out,
)

GINKGO_2 = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="6"><testsuite name="Kubernetes e2e suite">
  <testcase name="[SynchronizedBeforeSuite]" status="passed" time="1.5"></testcase>
  <testcase name="[It] [sig-scheduling] Predicates respects selectors" status="passed" time="12.25"></testcase>
  <testcase name="[It] [sig-scheduling] Predicates respects taints" status="failed" time="3">
    <failure message="expected&#10;  one pod" type="failed">trace</failure></testcase>
  <testcase name="[It] [sig-network] DNS works" status="skipped" time="0"><skipped message="skipped"></skipped></testcase>
  <testcase name="[It] [sig-scheduling] GPUs" status="skipped" time="0.1"><skipped message="skipped - only on gce"></skipped></testcase>
  <testcase name="[ReportAfterSuite] Kubernetes e2e suite report" status="passed" time="0.1"></testcase>
</testsuite></testsuites>"""

GINKGO_1 = """<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="Kubernetes e2e suite" tests="3">
  <testcase name="[sig-scheduling] Predicates respects selectors" classname="Kubernetes e2e suite" time="12.25"></testcase>
  <testcase name="[sig-scheduling] Predicates respects taints" classname="Kubernetes e2e suite" time="3">
    <failure type="Failure">expected
  one pod</failure></testcase>
  <testcase name="[sig-network] DNS works" classname="Kubernetes e2e suite" time="0"><skipped></skipped></testcase>
</testsuite>"""

SHARED = [
    SpecOutcome("[sig-scheduling] Predicates respects selectors", SpecVerdict.PASSED, 12.25),
    SpecOutcome("[sig-scheduling] Predicates respects taints", SpecVerdict.FAILED, 3.0, "expected one pod"),
    SpecOutcome("[sig-network] DNS works", SpecVerdict.SKIPPED),
]


HOST_PORTS = "[sig-x] there is no conflict between pods with same hostPort but different hostIP and protocol"
DRIVER = "runs a DRA driver in pods, beside a real kubelet"


def written(folder: Path, text: str) -> Path:
    report = folder / "junit_01.xml"
    report.write_text(text)
    return report


def test_reports_of_both_versions_say_the_same(tmp_path: Path) -> None:
    assert read_report(written(tmp_path, GINKGO_1)) == SHARED
    assert read_report(written(tmp_path, GINKGO_2))[:3] == SHARED


def test_a_spec_that_skipped_itself_says_why(tmp_path: Path) -> None:
    assert read_report(written(tmp_path, GINKGO_2))[3:] == [SpecOutcome("[sig-scheduling] GPUs", SpecVerdict.SKIPPED, 0.1, "only on gce")]


@pytest.mark.parametrize("step", ["[SynchronizedBeforeSuite]", "BeforeSuite"])
def test_a_step_around_the_specs_counts_when_it_fails(tmp_path: Path, step: str) -> None:
    case = f'<testsuite><testcase name="{step}" time="1"><failure>no nodes</failure></testcase></testsuite>'
    assert read_report(written(tmp_path, case)) == [SpecOutcome(step, SpecVerdict.FAILED, 1.0, "no nodes")]


@pytest.mark.parametrize("text", ["", "<testsuite>", "not XML"])
def test_a_torn_report_is_unreadable(tmp_path: Path, text: str) -> None:
    with pytest.raises(UnreadableReport, match=r"junit_01\.xml: "):
        read_report(written(tmp_path, text))


def test_a_missing_report_is_unreadable(tmp_path: Path) -> None:
    with pytest.raises(UnreadableReport):
        read_report(tmp_path / "junit_01.xml")


@pytest.mark.parametrize(
    ("spec", "gates", "reason"),
    [
        ("[sig-scheduling] SchedulerPredicates [Serial] validates that NodeSelector is respected", (), ""),
        ("[sig-scheduling] Preemption [FeatureGate:SchedulerAsyncPreemption] [Beta] preempts", (), ""),
        ("[sig-scheduling] Workload [FeatureGate:GenericWorkload] [Alpha] [Feature:OffByDefault] CRUD", ("GenericWorkload",), ""),
        ("[sig-x] [FeatureGate:A] [Feature:OffByDefault] [FeatureGate:B] both", ("A",), "its feature gate is off: B"),
        ("[sig-node] [DRA] control plane supports sharing a claim", (), ""),
        ("[sig-node] [DRA] control plane [FeatureGate:A] [Beta] runs beside a kubelet of its own", (), ""),
        ("[sig-node] [DRA] kubelet on single node must run", (), DRIVER),
        ("[sig-node] [DRA] [FeatureGate:A] [Feature:DynamicResourceAllocation] must run", (), DRIVER),
        (f"{HOST_PORTS} [Conformance]", (), "executes curl in a pod, against what listens in others"),
        (HOST_PORTS, (), ""),
        ("[sig-scheduling] [Feature:GPUDevicePlugin] run", (), "downloads a vendor's driver, and runs it on nodes"),
    ],
)
def test_what_is_left_out_has_a_reason(spec: str, gates: tuple[str, ...], reason: str) -> None:
    assert reason_to_leave_out(spec, gates) == reason


def test_no_pattern_leaves_out_all_specs_of_a_group() -> None:
    for group in ("[sig-scheduling] ", "[sig-node] [DRA] ", ""):
        assert not [each for each in LEFT_OUT if reason_to_leave_out(group, ()) == each.reason]


def test_failures_come_last_and_the_numbers_after_them() -> None:
    outcomes = [*SHARED, SpecOutcome("[DRA] kubelet runs", SpecVerdict.LEFT_OUT, why="needs a kubelet")]
    assert list(lines(outcomes)) == [
        "passed      12.2 s  [sig-scheduling] Predicates respects selectors",
        "skipped             [sig-network] DNS works",
        "left out            [DRA] kubelet runs",
        "                    needs a kubelet",
        "failed       3.0 s  [sig-scheduling] Predicates respects taints",
        "                    expected one pod",
        "1 passed, 1 failed, 1 skipped by themselves, 1 left out",
    ]


def test_a_run_in_which_nothing_passed_says_so() -> None:
    assert numbers([]) == "0 passed"
