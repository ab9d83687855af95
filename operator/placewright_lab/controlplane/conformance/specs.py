"""What became of each spec, read from the JUnit report that every version of e2e.test can write.

Version 1 of Ginkgo (Kubernetes up to 1.24) and version 2 differ: only the latter marks specs with `[It]`, lists setup steps among them, and
says why a spec skipped itself. Both list every spec of the program, those that were not asked for as skipped.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

_IT: Final = "[It] "
#: How the names of steps that are no specs begin; one that fails fails the run.
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
        seconds: how long it took.
        why: one line: the failure, what the spec said when it skipped itself, or why it was left out.
    """

    spec: str
    verdict: SpecVerdict
    seconds: float = 0.0
    why: str = ""


class UnreadableReport(Exception):
    """The report is not there, or is no JUnit: e2e.test did not come to its end."""


def read_report(path: Path) -> list[SpecOutcome]:
    """Every spec of the program, in the order of the report. Raises `UnreadableReport`."""
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
