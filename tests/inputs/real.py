"""Real data beside the checkout, never in it: `../shared/data`, with the folders `openb` and `manifests`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def also_real(made_up: Callable[[], Any], real: Callable[[], Any]) -> list[Any]:
    """Parameters of a test: what makes the made-up data, always; what reads the real data, where it is.

    The test's name says which: `[made-up]` or `[real]`, before what else distinguishes its cases (`[real-volcano]`).
    """
    found = [pytest.param(made_up, id="made-up")]
    return [*found, pytest.param(real, id="real", marks=pytest.mark.real_data)] if DATA.is_dir() else found


def takes_real_data(node_id: str) -> bool:
    """Whether a test's name is that of one that takes real data."""
    return node_id.partition("[")[2].startswith(("real-", "real]"))
