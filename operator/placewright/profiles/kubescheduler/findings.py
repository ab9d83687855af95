"""Findings of a conversion: settings that could not be carried over, or only in another form."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import NamedTuple

from placewright.profiles.defaults import PACKAGES


class Loss(enum.Enum):
    """The weight of a finding."""

    #: Pods may be placed differently.
    PLACEMENT = enum.auto()
    #: A setting of the process, or of how it is watched, that has no counterpart; placement is the same.
    SETTING = enum.auto()
    #: Nothing is lost; it looks different now.
    NOTE = enum.auto()


class ConversionFinding(NamedTuple):
    """One finding: the path in the input, the text, and its weight."""

    path: str
    text: str
    loss: Loss

    def __str__(self) -> str:
        """One line, for people."""
        return f"{self.path}: {self.text}"


class ConversionFindings:
    """Collects findings; each is kept once."""

    def __init__(self) -> None:
        self._found: dict[ConversionFinding, None] = {}

    def placement(self, path: str, text: str) -> None:
        """Note that pods may be placed differently."""
        self._found[ConversionFinding(path, text, Loss.PLACEMENT)] = None

    def setting(self, path: str, text: str) -> None:
        """Note that a setting of the process is lost."""
        self._found[ConversionFinding(path, text, Loss.SETTING)] = None

    def note(self, path: str, text: str) -> None:
        """Note a difference in form, by which nothing is lost."""
        self._found[ConversionFinding(path, text, Loss.NOTE)] = None

    def all(self) -> tuple[ConversionFinding, ...]:
        """List the findings.

        Returns:
            In the order in which they were found.
        """
        return tuple(self._found)


def not_installed(name: str) -> str:
    """Say of a plugin of `PACKAGES` which package brings it; it is left out of the conversion."""
    return f"{name}: is in the package {PACKAGES[name]}, which is not installed here; install it and convert again. It is left out"


def without_counterpart(findings: Iterable[ConversionFinding]) -> tuple[ConversionFinding, ...]:
    """Select the findings that are more than notes.

    Returns:
        Losses of placement and of settings.
    """
    return tuple(finding for finding in findings if finding.loss is not Loss.NOTE)
