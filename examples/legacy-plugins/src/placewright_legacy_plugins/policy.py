"""Reads the legacy Policy file as a profile.

The profile starts from today's default one. Plugins that a Policy could choose filter and score only if the Policy says so. Later plugins
(scheduling gates, dynamic resources, preemption) stay on, because pods rely on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from placewright.api.bad_input import in_json
from placewright.api.extenders import ExtenderSpec
from placewright.api.objects import ObjectMeta
from placewright.api.profile import DEFAULT_SCHEDULER_NAME, Plugins, ProfileSpec, SchedulingProfile
from placewright.framework.interface import FilterPlugin, Plugin, PreBindPlugin, PreFilterPlugin, ReservePlugin, ScorePlugin
from placewright.profiles.defaults import PACKAGES, Catalogue
from placewright.profiles.kubescheduler.draft import Draft
from placewright.profiles.kubescheduler.findings import ConversionFindings, not_installed
from placewright.profiles.kubescheduler.history import GONE
from placewright.profiles.problem import Problem, ProfileError
from placewright.profiles.strictdecode import decode_strict
from placewright_legacy_plugins.policytypes import LegacyExtender, Policy
from placewright_legacy_plugins.predicates import PREDICATES, SPREAD, Filters, read_predicates
from placewright_legacy_plugins.priorities import PRIORITIES, Scores, read_priorities
from placewright_legacy_plugins.strategies import FIT, adopt_strategy, heaviest

#: Every plugin that a Policy could choose, in a settled order.
_CHOSEN: Final = tuple(dict.fromkeys([*(name for names in PREDICATES.values() for name in names), *PRIORITIES.values()]))
#: Points at which a plugin that only scores is switched off.
_FILTERING: Final[Mapping[str, type[Plugin]]] = {
    "pre_filter": PreFilterPlugin,
    "filter": FilterPlugin,
    "reserve": ReservePlugin,
    "pre_bind": PreBindPlugin,
}
_UNITS: Final = ((10**9, "s"), (10**6, "ms"), (10**3, "us"), (1, "ns"))


def read_policy(document: Mapping[str, Any], catalogue: Catalogue, findings: ConversionFindings) -> SchedulingProfile:
    """Build the profile that places pods as the Policy did.

    Args:
        document: as parsed.
        catalogue: the plugins that exist here.
        findings: takes differences.

    Returns:
        The profile.

    Raises:
        ProfileError: the Policy cannot be read, or made kube-scheduler exit.
    """
    policy = decode_strict(_with_todays_spelling(document), Policy)
    if policy.api_version != "v1":
        raise ProfileError([Problem("apiVersion", in_json(policy.api_version), "v1")])
    filters = read_predicates(policy.predicates, findings)
    scores = read_priorities(policy.priorities, findings)
    # From today's default profile: pods count on plugins that no Policy could name, such as scheduling gates (decision 0014).
    draft = Draft(Plugins(), ())
    _arguments(draft, policy, filters, scores)
    _strategy(draft, scores, findings)
    _leave_out(draft, filters, scores, catalogue, findings)
    weights = _choose(draft, filters.plugins, scores.weights, catalogue)
    if policy.always_check_all_predicates is not None:
        findings.setting("alwaysCheckAllPredicates", "a node is always rejected by the first plugin that says no")
    extenders = [_extender(extender, f"extenders[{i}]") for i, extender in enumerate(policy.extenders or ())]
    spec = ProfileSpec(
        scheduler_name=DEFAULT_SCHEDULER_NAME,
        plugins=draft.plugins(),
        plugin_config=draft.plugin_config(),
        weights=weights or None,
        extenders=extenders or None,
    )
    return SchedulingProfile(metadata=ObjectMeta(name=DEFAULT_SCHEDULER_NAME), spec=spec)


def _leave_out(draft: Draft, filters: Filters, scores: Scores, catalogue: Catalogue, findings: ConversionFindings) -> None:
    """Take out plugins whose package is not installed; each is a finding."""
    for name in PACKAGES:
        if name in catalogue:
            continue
        if name in filters.plugins:
            findings.placement("predicates", not_installed(name))
            filters.plugins.discard(name)
        if scores.weights.pop(name, None) is not None:
            findings.placement("priorities", not_installed(name))
        draft.args.pop(name, None)


def _choose(draft: Draft, filtering: Iterable[str], scoring: Mapping[str, int], catalogue: Catalogue) -> dict[str, int]:
    """Switch plugins on and off. Returns the weights of plugins that score, and 0 for plugins that only filter."""
    filtering, weights = set(filtering), dict(scoring)
    for name in _CHOSEN:
        plugin = catalogue.get(name)
        if plugin is None:
            continue
        if name not in filtering and name not in scoring:
            if name not in GONE:
                draft.multi_point.disable(name)
            continue
        if name in GONE:  # no default any more, so leaving it alone would not run it
            draft.multi_point.enable(name)
        if name not in filtering:
            for point, base in _FILTERING.items():
                if issubclass(plugin, base):
                    draft.sets[point].disable(name)
        elif name not in scoring and issubclass(plugin, ScorePlugin):
            weights[name] = 0  # a weight of 0 leaves the filter on
    return weights


def _strategy(draft: Draft, scores: Scores, findings: ConversionFindings) -> None:
    chosen = heaviest(scores.strategies, "priorities", findings)
    if chosen is not None:
        adopt_strategy(draft.args, chosen)
        scores.add(FIT, chosen.weight)


def _arguments(draft: Draft, policy: Policy, filters: Filters, scores: Scores) -> None:
    labels = {
        "presentLabels": filters.present_labels,
        "absentLabels": filters.absent_labels,
        "presentLabelsPreference": scores.present_labels,
        "absentLabelsPreference": scores.absent_labels,
    }
    services = {"affinityLabels": filters.affinity_labels, "antiAffinityLabelsPreference": scores.anti_affinity_labels}
    for name, args in (("NodeLabel", labels), ("ServiceAffinity", services)):
        if stated := {field: values for field, values in args.items() if values}:
            draft.args[name] = stated
    if policy.hard_pod_affinity_symmetric_weight is not None:
        draft.args["InterPodAffinity"] = {"hardPodAffinityWeight": policy.hard_pod_affinity_symmetric_weight}
    if SPREAD in scores.weights and not scores.system_spread:
        draft.args[SPREAD] = {"defaultingType": "List"}


# --- extenders -------------------------------------------------------------------------------------------------------------


def _with_todays_spelling(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Accept `enableHTTPS`, too: Go's JSON ignores case."""
    extenders = document.get("extenders")
    if not isinstance(extenders, list):
        return document
    renamed = [
        {("enableHttps" if key == "enableHTTPS" else key): value for key, value in one.items()} if isinstance(one, Mapping) else one
        for one in extenders
    ]
    return {**document, "extenders": renamed}


def _extender(legacy: LegacyExtender, path: str) -> ExtenderSpec:
    same = {name: getattr(legacy, name) for name in ExtenderSpec.__struct_fields__ if name != "http_timeout"}
    return msgspec.structs.replace(ExtenderSpec(), **same, http_timeout=_duration(legacy.http_timeout, path))


def _duration(timeout: int | str, path: str) -> str:
    """Convert Go's nanoseconds into the largest unit that gives a whole number."""
    if isinstance(timeout, str):
        return timeout
    if timeout < 0:
        raise ProfileError([Problem(f"{path}.httpTimeout", str(timeout), "nanoseconds, 0 or more")])
    if not timeout:
        return ""
    size, unit = next((size, unit) for size, unit in _UNITS if timeout % size == 0)
    return f"{timeout // size}{unit}"
