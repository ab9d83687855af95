"""The outcome of each spec, read from the JUnit report that every version of e2e.test can write.

Version 1 of Ginkgo (Kubernetes up to 1.24) and version 2 differ: only the latter marks specs with `[It]`, lists setup steps among them, and
says why a spec skipped itself. Both list every spec of the program, and specs that were not asked for as skipped.

Beside it: specs that cannot pass here, and why, as nodes are simulated: nothing is executed on them and nothing listens. A spec is
left out when it fails with kube-scheduler on the same nodes, too (`--scheduler kube-scheduler --all` shows it).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

_IT: Final = "[It] "
#: First words of steps that are no specs. If such a step fails, the run fails.
_STEPS: Final = (
    "BeforeSuite", "AfterSuite", "[BeforeSuite]", "[AfterSuite]", "[Synchronized", "[ReportBeforeSuite]", "[ReportAfterSuite]", "[Deferred",
)  # fmt: skip
_WHY_SKIPPED: Final = "skipped - "


class SpecVerdict(StrEnum):
    """How a spec ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    LEFT_OUT = "left out"


@dataclass(frozen=True, slots=True)
class SpecOutcome:
    """One spec, or a step around all of them that failed.

    Attributes:
        spec: its full name.
        seconds: duration of the spec.
        why: one line: the failure, what the spec said when it skipped itself, or why it was left out.
    """

    spec: str
    verdict: SpecVerdict
    seconds: float = 0.0
    why: str = ""


class UnreadableReport(Exception):
    """The report is not there, or is no JUnit: e2e.test did not come to its end."""


def read_report(path: Path) -> list[SpecOutcome]:
    """Return every spec of the program, in the order of the report. Raises `UnreadableReport`."""
    try:
        root = ET.parse(path).getroot()  # noqa: S314 - written by the program that we ran
    except (OSError, ET.ParseError) as error:
        raise UnreadableReport(f"{path}: {error}") from None
    found = [_outcome(case) for case in root.iter("testcase")]
    return [each for each in found if each.verdict is SpecVerdict.FAILED or not each.spec.startswith(_STEPS)]


def _outcome(case: ET.Element) -> SpecOutcome:
    spec, seconds = case.get("name", "").removeprefix(_IT), _seconds(case.get("time", ""))
    for tag in ("failure", "error"):
        if (failed := case.find(tag)) is not None:
            return SpecOutcome(spec, SpecVerdict.FAILED, seconds, _one_line(failed.get("message") or failed.text or "it does not say why"))
    if (skipped := case.find("skipped")) is not None:
        message = skipped.get("message", "")
        why = _one_line(message.removeprefix(_WHY_SKIPPED)) if _WHY_SKIPPED in message else ""
        return SpecOutcome(spec, SpecVerdict.SKIPPED, seconds, why)
    return SpecOutcome(spec, SpecVerdict.PASSED, seconds)


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _one_line(text: str) -> str:
    return " ".join(text.split())


# --- specs that are left out ---


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Specs whose full name matches a regular expression, in what Go and Python both understand of it."""

    pattern: str
    reason: str


LEFT_OUT: Final = (
    LeftOut(
        r"no conflict between pods with same hostPort but different hostIP and protocol.*\[Conformance\]",
        "executes curl in a pod, against what listens in others",
    ),
    LeftOut(r"\[Feature:GPUDevicePlugin\]", "downloads a vendor's driver, and runs it on nodes"),
    LeftOut(r"\[DRA\] (\[[^]]*\] )*(kubelet |\[Feature:DynamicResourceAllocation\])", "runs a DRA driver in pods, beside a real kubelet"),
)
_GATE: Final = re.compile(r"\[FeatureGate:([A-Za-z0-9]+)\]")
_OFF: Final = "[Feature:OffByDefault]"


def reason_to_leave_out(spec: str, gates: Collection[str]) -> str:
    """Why a spec is not run where these feature gates are on beyond the defaults; empty for one that is."""
    for each in LEFT_OUT:
        if re.search(each.pattern, spec):
            return each.reason
    lacking = [gate for gate in _GATE.findall(spec) if gate not in gates] if _OFF in spec else []
    return f"its feature gate is off: {', '.join(lacking)}" if lacking else ""


# --- the result, for a person: spec by spec, failures last, and a line with the numbers ---

_ORDER: Final = (SpecVerdict.PASSED, SpecVerdict.SKIPPED, SpecVerdict.LEFT_OUT, SpecVerdict.FAILED)
_LONGEST_WHY: Final = 500


def lines(outcomes: Sequence[SpecOutcome]) -> Iterator[str]:
    """Yield the lines to print."""
    for verdict in _ORDER:
        for each in sorted(outcomes, key=lambda outcome: outcome.spec):
            if each.verdict is verdict:
                yield f"{verdict:<9}{_took(each)}  {each.spec}"
                if each.why:
                    yield f"{'':20}{each.why[:_LONGEST_WHY]}"
    yield numbers(outcomes)


def numbers(outcomes: Sequence[SpecOutcome]) -> str:
    """Such as "28 passed, 1 failed, 2 left out"; what did not happen is not mentioned, passes always are."""
    counts = Counter(each.verdict for each in outcomes)
    order = (SpecVerdict.PASSED, SpecVerdict.FAILED, SpecVerdict.SKIPPED, SpecVerdict.LEFT_OUT)
    words = {SpecVerdict.SKIPPED: "skipped by themselves"}
    return ", ".join(f"{counts[each]} {words.get(each, each)}" for each in order if counts[each] or each is SpecVerdict.PASSED)


def _took(outcome: SpecOutcome) -> str:
    return f"{outcome.seconds:7.1f} s" if outcome.verdict in (SpecVerdict.PASSED, SpecVerdict.FAILED) else " " * 9
