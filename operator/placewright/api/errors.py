"""Errors that cross rooms: raised by the writers of `kube`, caught by the scheduler."""

from __future__ import annotations


class BindError(Exception):
    """A Binding was refused, or its outcome is unknown.

    Attributes:
        conflict: another writer bound, deleted or replaced the pod (a 409, or found by reading it). Read the pod, do not repeat the
            Binding.
        unknown: the answer got lost and the pod could not be read afterwards, so the Binding may exist. The pod's room on its node stays
            taken until a watch tells.
    """

    def __init__(self, message: str, *, conflict: bool = False, unknown: bool = False) -> None:
        super().__init__(message)
        self.conflict = conflict
        self.unknown = unknown


class EvictError(Exception):
    """A victim of preemption could not be removed. It still runs."""


class VolumeError(Exception):
    """A volume or its claim could not be written, or waiting for it has become pointless."""


class PatchError(Exception):
    """An object that a plugin patches could not be written."""


class ClaimError(Exception):
    """A ResourceClaim could not be written, or waiting for its devices has become pointless."""
