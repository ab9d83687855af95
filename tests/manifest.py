"""An object as JSON in a few words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Object = dict[str, Any]


def manifest(api_version: str, kind: str, name: str, meta: Mapping[str, Any] | None = None, /, **content: Any) -> Object:
    """An object with this name, more metadata than that, and what stands beside it."""
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **(meta or {})}, **content}
