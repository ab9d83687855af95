"""The error of all forms of patches."""

from __future__ import annotations

from collections.abc import Sequence


class PatchError(Exception):
    """A patch that cannot be applied.

    Attributes:
        code: 400 (unreadable), 404 (no object), 409 (fields of other managers), 413 (too long), 415 (unknown form), 422 (does not fit), or
            500 if a real server has no code for the fault.
        causes: conflicts, as the details of a Status show them.
    """

    def __init__(self, message: str, *, code: int = 422, causes: Sequence[dict[str, str]] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.causes = list(causes)
