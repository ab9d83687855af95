"""Finds the readers of files of kube-scheduler up to 1.22: `placewright-legacy-plugins` brings them."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any, Final

from placewright.api.bad_input import in_json
from placewright.profiles.defaults import LEGACY_PACKAGE
from placewright.profiles.problem import Problem, ProfileError

#: The entry point group. A name is a kind, or a version of KubeSchedulerConfiguration.
ENTRY_POINT_GROUP: Final = "placewright.conversions"
POLICY_KIND: Final = "Policy"
V1BETA1: Final = "v1beta1"


def legacy(name: str, field: str) -> Any:
    """Load a reader.

    Returns:
        The function of an installed package.

    Raises:
        ProfileError: no package brings it; the message names the package that does.
    """
    entry = next(iter(entry_points(group=ENTRY_POINT_GROUP, name=name)), None)
    if entry is None:
        allowed = f"a file of kube-scheduler 1.23 or newer; {name} is read by the package {LEGACY_PACKAGE}: install it (docs/conversion.md)"
        raise ProfileError([Problem(field, in_json(name), allowed)])
    return entry.load()
