"""Rewrites profiles of KubeSchedulerConfiguration v1beta1, whose strategies were plugins, and whose constraints needed no type."""

from __future__ import annotations

from typing import Any, Final

from placewright.api.profile import PluginRef
from placewright.profiles.kubescheduler.draft import Draft
from placewright.profiles.kubescheduler.findings import ConversionFindings
from placewright_legacy_plugins.predicates import SPREAD
from placewright_legacy_plugins.strategies import FIT, STRATEGIES, Strategy, adopt_strategy, heaviest

DEFAULT_STRATEGY: Final = "NodeResourcesLeastAllocated"


def upgrade(draft: Draft, path: str, findings: ConversionFindings) -> None:
    """Rewrite a profile in place, so that it means the same under v1beta2, but for plugins that v1beta1 had by default.

    Args:
        draft: the profile.
        path: of the profile, for findings.
        findings: takes differences.
    """
    _strategies(draft, path, findings)
    _default_constraints(draft, path, findings)


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
