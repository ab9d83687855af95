"""Traces in CSV files: rows with their place for messages, cells as numbers and names, and the times of pods."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from placewright.api.bad_input import InputError, bad_field

#: A kubelet's default limit of pods on a node, because traces have no limit.
PODS_PER_NODE: Final = 110
#: The namespace of a trace's pods.
NAMESPACE: Final = "default"
IMAGE: Final = "registry.k8s.io/pause:3.10"

_LARGEST: Final = 10**12
_LABEL_VALUE: Final = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")


class TraceTimes(NamedTuple):
    """The times of a pod, in seconds of the trace.

    Attributes:
        created: time at which it came.
        deleted: time at which it left, or None.
        runs: seconds for which it ran; None for a pod that was never scheduled, or never left.
    """

    created: int
    deleted: int | None
    runs: int | None


class TraceRow(NamedTuple):
    """One line of a CSV file, with its place for error messages."""

    file: str
    line: int
    cells: Mapping[str, str]

    def at(self, column: str) -> str:
        """Return the place of a cell for a message."""
        return f"{self.file}: line {self.line}, column {column}"

    def number(self, column: str, *, least: int = 0, most: int = _LARGEST) -> int:
        """Return a whole number from a cell. Raises `InputError` for other text."""
        text = self.cells[column].strip()
        value = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else least - 1
        if not least <= value <= most:
            raise bad_field(self.at(column), self.cells[column], f"a whole number from {least} to {most}")
        return value

    def label_value(self, column: str, text: str) -> str:
        """Return text that can be a label's value. Raises `InputError` for other text."""
        if not _LABEL_VALUE.fullmatch(text):
            raise bad_field(self.at(column), text, "at most 63 letters, digits, '-', '_' and '.', as in a label")
        return text


class TraceNames:
    """Object names from the trace's names, each used once."""

    def __init__(self, column: str) -> None:
        self._column = column
        self._line_of: dict[str, int] = {}

    def take(self, row: TraceRow) -> str:
        """Return the DNS-safe name of this row. Raises `InputError` if it is empty, too long or taken."""
        text = row.cells[self._column]
        name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
        if not name or len(name) > 63:
            raise bad_field(row.at(self._column), text, "a name of 1 to 63 characters with at least one letter or digit")
        if (line := self._line_of.setdefault(name, row.line)) != row.line:
            raise bad_field(row.at(self._column), text, f"a name used once; line {line} has it (as {name})")
        return name


def header(text: str) -> list[str]:
    """Return the columns that the first line names."""
    first = text.removeprefix("\ufeff").lstrip().partition("\n")[0]
    return [cell.strip() for cell in first.split(",")]


def trace_rows(text: str, file: str, columns: Sequence[str]) -> Iterator[TraceRow]:
    """Read the lines under the header. Raises `InputError` for a missing column, or a line with more or fewer cells."""
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    wanted = "a first line with the columns " + ",".join(columns)
    try:
        named = [cell.strip() for cell in next(reader, [])]
        if missing := [c for c in columns if c not in named]:
            raise bad_field(f"{file}: line 1, column {missing[0]}", ",".join(named) or None, wanted)
        count = 0
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(named):
                raise bad_field(f"{file}: line {reader.line_num}", f"{len(cells)} columns", f"{len(named)}, as in line 1")
            count += 1
            yield TraceRow(file, reader.line_num, dict(zip(named, cells, strict=True)))
    except csv.Error as error:
        raise InputError(f"{file}: line {reader.line_num}: not CSV: {error}") from None
    if not count:
        raise bad_field(f"{file}: line 2", None, "at least one row under the header")


def trace_pod(name: str, requests: Mapping[str, str], limits: Mapping[str, str], labels: Mapping[str, str]) -> dict[str, Any]:
    """Return a pod of one container in the form of a POST."""
    resources: dict[str, Any] = {"requests": dict(requests)}
    if limits:
        resources["limits"] = dict(limits)
    spec: dict[str, Any] = {"containers": [{"name": "main", "image": IMAGE, "resources": resources}]}
    metadata = {"name": name, "namespace": NAMESPACE, "labels": dict(labels)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
