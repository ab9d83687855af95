from __future__ import annotations

from handlers.conftest import stage

__all__ = ["stage"]
