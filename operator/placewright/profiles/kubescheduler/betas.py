"""Rewrites profiles of KubeSchedulerConfiguration v1beta1 to v1beta3 for v1, which has other defaults, weights and names."""

from __future__ import annotations

from placewright.profiles.kubescheduler.draft import Draft
from placewright.profiles.kubescheduler.findings import ConversionFindings
from placewright.profiles.kubescheduler.history import DEFAULT_WEIGHTS, FORMER_DEFAULTS
from placewright.profiles.kubescheduler.legacy import V1BETA1, legacy


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
