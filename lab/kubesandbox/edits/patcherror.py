"""The error of all forms of patches."""

from __future__ import annotations

from collections.abc import Sequence


class PatchError(Exception):
    """A patch that cannot be applied.

    Attributes:
        code: status of the answer; 500 if a real server has no code for the fault.
        causes: conflicts in the details of a Status.
    """

    def __init__(self, message: str, *, code: int = 422, causes: Sequence[dict[str, str]] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.causes = list(causes)
