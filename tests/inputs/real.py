"""Real data beside the checkout, never in it: `../shared/data`, with the folders `openb` and `manifests`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

MARKER = "real_data: takes the data beside the checkout; only `make test-all` runs it"
DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def also_real(made_up: Callable[[], Any], real: Callable[[], Any]) -> list[Any]:
    """Parameters of a test: what makes the made-up data, always; what reads the real data, where it is."""
    found = [pytest.param(made_up, id="made-up")]
    return [*found, pytest.param(real, id="real", marks=pytest.mark.real_data)] if DATA.is_dir() else found


def pytest_configure(config: pytest.Config) -> None:
    """For the conftest of a room whose tests take real data."""
    config.addinivalue_line("markers", MARKER)
