"""Writes the problems of files in the formats of people, scripts and code hosts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from types import MappingProxyType
from typing import Any, Final

from placewright.api.bad_input import printable
from placewright.cli.version import installed
from placewright.profiles.validation import ValidationFinding

Format = Callable[[Sequence[ValidationFinding]], str]

_SARIF_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_RULE: Final = "profile"


def as_text(findings: Sequence[ValidationFinding]) -> str:
    """Write a line for each problem: `file:line:column: path: found X; allowed Y`."""
    return "".join(f"{finding}\n" for finding in findings)


def as_json(findings: Sequence[ValidationFinding]) -> str:
    """Write a list of objects."""
    return json.dumps([_fields(finding) for finding in findings], indent=2) + "\n"


def as_github(findings: Sequence[ValidationFinding]) -> str:
    """Write workflow commands of GitHub Actions, which become annotations of a pull request's lines."""
    return "".join(
        f"::error file={_property(finding.file)},line={finding.place.line},col={finding.place.column}"
        f",title=Scheduling profile::{_data(str(finding.problem))}\n"
        for finding in findings
    )


def as_sarif(findings: Sequence[ValidationFinding]) -> str:
    """Write SARIF 2.1.0, the format of code scanning."""
    rule = {"id": _RULE, "shortDescription": {"text": "A scheduling profile that would not come into effect"}}
    driver = {"name": "placewright", "version": installed("placewright"), "rules": [rule]}
    run = {"tool": {"driver": driver}, "results": [_result(finding) for finding in findings]}
    return json.dumps({"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _fields(finding: ValidationFinding) -> dict[str, Any]:
    place = {"file": finding.file, "line": finding.place.line, "column": finding.place.column}
    return place | finding.problem._asdict()


def _result(finding: ValidationFinding) -> dict[str, Any]:
    region = {"startLine": finding.place.line, "startColumn": finding.place.column}
    location = {"artifactLocation": {"uri": PurePath(finding.file).as_posix()}, "region": region}
    message = {"text": str(finding.problem)}
    return {"ruleId": _RULE, "level": "error", "message": message, "locations": [{"physicalLocation": location}]}


def _data(text: str) -> str:
    # The percent sign first: the other escapes contain it.
    return "\n".join(map(printable, text.split("\n"))).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


FORMATS: Final[Mapping[str, Format]] = MappingProxyType({"text": as_text, "json": as_json, "github": as_github, "sarif": as_sarif})
