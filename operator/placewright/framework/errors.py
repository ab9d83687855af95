"""What ends a cycle without a verdict about the pod."""

from __future__ import annotations


class CycleError(Exception):
    """A plugin broke: the cycle fails, the pod comes back after its error backoff."""


class InvalidScoreError(CycleError):
    """A plugin returned a score outside 0..100."""
