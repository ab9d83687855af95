from __future__ import annotations

from inputs.real import pytest_configure

__all__ = ["pytest_configure"]
