"""Failures that cross rooms: raised by the network's side, caught by the scheduler's."""

from __future__ import annotations


class BindError(Exception):
    """A Binding was not accepted, or nobody knows whether it was.

    Attributes:
        conflict: 409, or found out by looking: somebody else bound, deleted or replaced the pod. Look again, do not repeat.
        unknown: the answer got lost and the pod could not be read afterwards: the Binding may exist. What the pod would use on its node
            stays taken until a watch tells.
    """

    def __init__(self, message: str, *, conflict: bool = False, unknown: bool = False) -> None:
        super().__init__(message)
        self.conflict = conflict
        self.unknown = unknown


class EvictError(Exception):
    """A victim of preemption could not be removed; it still runs."""


class VolumeError(Exception):
    """A volume or a claim could not be written to, or waiting for it makes no sense any more."""


class ClaimError(Exception):
    """A claim to devices could not be written to, or waiting for its devices makes no sense any more."""
