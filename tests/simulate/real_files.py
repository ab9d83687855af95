"""Where the real traces and manifests are: beside the checkout, never in it."""

from __future__ import annotations

from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
#: For tests that need them.
needs_real_files = pytest.mark.skipif(not DATA.is_dir(), reason="the real traces and manifests (../shared/data) are not here")
