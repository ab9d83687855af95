"""The tables of docs/sandbox.md; `test_pages.py` follows its commands."""

from __future__ import annotations

from pathlib import Path

from kubesandbox.devices.layouts import DeviceKind

PAGE = Path(__file__).parents[2] / "docs" / "sandbox.md"


def test_the_page_has_every_kind_of_device() -> None:
    _, table = PAGE.read_text().split("| `--device-kind` |")
    rows = [line.split("|")[1].strip(" `") for line in table.splitlines() if line.startswith("| `")]
    assert rows == [*DeviceKind]
