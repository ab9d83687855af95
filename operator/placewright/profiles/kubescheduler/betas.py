"""Rewrites profiles of KubeSchedulerConfiguration v1beta1 to v1beta3 for v1, which has other defaults, weights and names."""

from __future__ import annotations

from typing import Any

from placewright.api.profile import PluginRef
from placewright.profiles.kubescheduler.draft import Draft
from placewright.profiles.kubescheduler.findings import ConversionFindings
from placewright.profiles.kubescheduler.history import (
    DEFAULT_STRATEGY,
    DEFAULT_WEIGHTS,
    FIT,
    FORMER_DEFAULTS,
    SPREAD,
    STRATEGIES,
)
from placewright.profiles.kubescheduler.priorities import Strategy, adopt_strategy, heaviest


def upgrade(draft: Draft, version: str, path: str, findings: ConversionFindings) -> None:
    """Rewrite a profile in place, so that it means the same under v1.

    Args:
        draft: the profile.
        version: `v1beta1` to `v1beta3`.
        path: of the profile, for findings.
        findings: takes differences.
    """
    if version == "v1beta1":
        _strategies(draft, path, findings)
        _default_constraints(draft, path, findings)
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


def _strategies(draft: Draft, path: str, findings: ConversionFindings) -> None:
    """Turn three score plugins into strategies of NodeResourcesFit, which has one strategy at a time."""
    score = draft.score
    own = [Strategy(ref.name, ref.weight or 1, _args(draft, ref.name)) for ref in score.enabled if ref.name in STRATEGIES]
    if not score.drops(DEFAULT_STRATEGY) and DEFAULT_STRATEGY not in [one.name for one in own]:
        own.append(Strategy(DEFAULT_STRATEGY, 1, _args(draft, DEFAULT_STRATEGY)))
    chosen = heaviest(own, f"{path}.plugins.score", findings)
    if chosen is None:
        score.disable(FIT)
    else:
        _enable_in_place(draft, chosen)
        adopt_strategy(draft.args, chosen)
    draft.forget(STRATEGIES)


def _enable_in_place(draft: Draft, chosen: Strategy) -> None:
    """Let NodeResourcesFit score in the place of the strategy's plugin; where that was on by default, NodeResourcesFit is, too."""
    names = draft.score.names()
    if chosen.name in names:
        draft.score.enabled[names.index(chosen.name)] = PluginRef(name=FIT, weight=chosen.weight)


def _args(draft: Draft, name: str) -> dict[str, Any]:
    return draft.args.get(name, {})


def _default_constraints(draft: Draft, path: str, findings: ConversionFindings) -> None:
    """Set the type of a list of constraints: Kubernetes 1.19 took the list without it."""
    args = draft.args.get(SPREAD, {})
    if args.get("defaultConstraints") and not args.get("defaultingType"):
        args["defaultingType"] = "List"
        text = f"{SPREAD}: defaultConstraints take defaultingType: List, which went without saying in Kubernetes 1.19"
        findings.note(f"{path}.pluginConfig", text)
