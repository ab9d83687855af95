"""Rewrites profiles of kube-scheduler's files, so that they mean the same here.

KubeSchedulerConfiguration v1beta1 to v1beta3 have other defaults, weights and names than v1. Files of kube-scheduler up to 1.22 have
readers in `placewright-legacy-plugins`.

Coscheduling, scheduler-plugins' way to place groups, becomes GangScheduling, which reads the same PodGroups and labels. Coscheduling has to
be enabled, and replaces the plugin that sorts the queue. GangScheduling is a default plugin, and groups have their place in the queue
whichever plugin sorts it.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any, Final

from placewright.api.bad_input import in_json
from placewright.profiles.defaults import LEGACY_PACKAGE
from placewright.profiles.kubescheduler.draft import Draft
from placewright.profiles.kubescheduler.findings import ConversionFindings
from placewright.profiles.kubescheduler.history import DEFAULT_WEIGHTS, FORMER_DEFAULTS
from placewright.profiles.problem import Problem, ProfileError

#: The entry point group. A name is a kind, or a version of KubeSchedulerConfiguration.
ENTRY_POINT_GROUP: Final = "placewright.conversions"
POLICY_KIND: Final = "Policy"
V1BETA1: Final = "v1beta1"
COSCHEDULING: Final = "Coscheduling"
GANG_SCHEDULING: Final = "GangScheduling"
_QUEUE_SORT: Final = "queue_sort"
_GATE: Final = "pre_enqueue"
_WITHOUT_COUNTERPART: Final = {
    "permitWaitingTimeSeconds": "no number of seconds above 0",
    "podGroupBackoffSeconds": "a group backs off as a pod does; the profile's backoff says how long",
    "podGroupRejectPercentage": "a group is decided as a whole, and refused as a whole",
}


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


def upgrade(draft: Draft, version: str, path: str, findings: ConversionFindings) -> None:
    """Rewrite a profile in place, so that it means the same under v1.

    Raises:
        ProfileError: no package is installed that reads v1beta1.
    """
    if version == V1BETA1:
        legacy(V1BETA1, "apiVersion")(draft, path, findings)
    for name, weight in DEFAULT_WEIGHTS[version].items():
        if name not in draft.multi_point.names() and not draft.multi_point.drops(name):
            draft.multi_point.enable(name, weight)
    _former_defaults(draft, version, path, findings)


def _former_defaults(draft: Draft, version: str, path: str, findings: ConversionFindings) -> None:
    """Keep plugins on that were on by default, unless the profile switched them off."""
    kept = []
    for former in FORMER_DEFAULTS[version]:
        own = draft.sets[former.point]
        named = former.name in (*own.names(), *draft.multi_point.names())
        if not named and not own.drops(former.name) and not draft.multi_point.drops(former.name):
            draft.multi_point.enable(former.name, former.weight)
            kept.append(former.name)
        elif not named:
            own.forget([former.name])  # v1 has no such default: there is nothing left to switch off
            draft.multi_point.forget([former.name])
    if kept:
        text = f"{', '.join(kept)}: on by default in {version}, therefore enabled; not among today's defaults"
        findings.note(f"{path}.plugins", text)


def replace_coscheduling(draft: Draft, path: str, findings: ConversionFindings) -> None:
    """Replace the plugin and its arguments, as far as these have a counterpart."""
    named = any(COSCHEDULING in each.names() for each in draft.sets.values())
    args = draft.args.get(COSCHEDULING)
    if not named and args is None:
        return
    sort = draft.sets[_QUEUE_SORT]
    if sort.names() == [COSCHEDULING]:
        sort.disabled = []
    draft.forget([COSCHEDULING])
    if named:
        findings.note(f"{path}.plugins", f"{COSCHEDULING} is {GANG_SCHEDULING} here, a default plugin: same PodGroups, same label")
        for name in ("multi_point", _GATE):
            if draft.sets[name].drops(GANG_SCHEDULING):
                draft.sets[name].enable(GANG_SCHEDULING)
    _arguments(draft, args or {}, f"{path}.pluginConfig", findings)


def _arguments(draft: Draft, args: dict[str, Any], path: str, findings: ConversionFindings) -> None:
    for name, value in args.items():
        if name == "permitWaitingTimeSeconds" and _is_positive(value):
            draft.args.setdefault(GANG_SCHEDULING, {}).setdefault("scheduleTimeoutSeconds", value)
            findings.note(path, f"{COSCHEDULING}: {name} is {GANG_SCHEDULING}'s scheduleTimeoutSeconds")
        elif value not in (0, None):
            why = _WITHOUT_COUNTERPART.get(name, "there is no such setting here")
            findings.setting(path, f"{COSCHEDULING}: {in_json(name)} {in_json(value)}: {why}")


def _is_positive(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
