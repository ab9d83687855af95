"""Which rejections a change of a profile puts in question."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final

from placewright.framework.runtime.resolvedprofile import ExtensionPoint, ResolvedProfile

#: Where plugins reject pods that then wait for an event. Pods that PreEnqueue keeps out are asked about anew after every change.
_REJECTING: Final = (
    ExtensionPoint.PRE_FILTER,
    ExtensionPoint.FILTER,
    ExtensionPoint.RESERVE,
    ExtensionPoint.PERMIT,
    ExtensionPoint.PRE_BIND,
)


def reconsidered(before: ResolvedProfile, after: ResolvedProfile) -> AbstractSet[str] | None:
    """The plugins whose earlier rejections may not hold under `after`: switched off where they rejected, or with other arguments.

    None stands for all of them: other extenders, or another way of making room, may find a place for any pod. Weights, backoff and plugins
    that were added change nothing for a pod that no node could hold.
    """
    if before.extenders != after.extenders or _making_room(before) != _making_room(after):
        return None
    enabled = ((point, name) for point in _REJECTING for name in before.at(point))
    return {name for point, name in enabled if name not in after.at(point) or before.args[name] != after.args[name]}


def _making_room(profile: ResolvedProfile) -> tuple[tuple[str, object], ...]:
    return tuple((name, profile.args[name]) for name in profile.at(ExtensionPoint.POST_FILTER))
