"""Advice about a profile in effect: settings that are allowed, and perhaps not meant so.

No author chose the defaults. A plugin with its default weight and arguments gets no advice if it has nothing to do. Most clusters have
such a plugin.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from placewright.api.profile import DEFAULT_SCHEDULER_NAME
from placewright.api.requests import CPU, is_extended_resource
from placewright.framework.interface import MAX_NODE_SCORE, Plugin
from placewright.framework.runtime.resolvedprofile import ExtensionPoint, ResolvedProfile
from placewright.framework.runtime.scoreimpact import SAMPLE_EVERY, ScoreImpact
from placewright.profiles.defaults import DEFAULT_PLUGINS

#: Reasons of the condition; stable, for alerts and scripts.
DROWNS_OTHERS: Final = "WeightDrownsOthers"
DEFAULT_SCHEDULER: Final = "DefaultSchedulerName"
NEVER_DECIDES: Final = "PluginNeverDecides"
NOTHING_TO_SCORE: Final = "PluginHasNothingToScore"
FILTER_IS_OFF: Final = "FilterIsOff"
ARGUMENTS_UNUSED: Final = "ArgumentsUnused"
PLUGIN_IDLE: Final = "PluginDoesNothing"
NO_SUCH_RESOURCE: Final = "NoNodeHasResource"
NOT_ASSIGNED: Final = "ProfileIsNotGiven"
SEVERAL_HINTS: Final = "SeveralHints"

#: The consequence of a missing filter. No other component prevents it: a kubelet that checks again refuses the pod for good.
_WITHOUT: Final[Mapping[str, str]] = {
    "NodeUnschedulable": "pods are put on cordoned nodes",
    "TaintToleration": "pods are put on nodes whose taints they do not tolerate, and evicted again where the effect is NoExecute",
    "NodeAffinity": "nodeSelector and required node affinity do not hold, and kubelets refuse such pods",
    "NodePorts": "pods with the same host port are put on one node, whose kubelet refuses the second",
    "NodeResourcesFit": "nodes are filled beyond their allocatable, and kubelets refuse the surplus pods",
    "VolumeRestrictions": "pods share disks and ReadWriteOncePod claims that allow one pod only",
    "NodeVolumeLimits": "nodes get more volumes than can be attached to them, and pods wait there for good",
    "VolumeBinding": "pods are put where their volumes cannot be used, and claims that wait for a first consumer get no volume",
    "VolumeZone": "pods are put into other zones than their volumes",
    "PodTopologySpread": "spread constraints with DoNotSchedule do not hold",
    "InterPodAffinity": "required pod affinity and anti-affinity do not hold",
    "DynamicResources": "pods are put on nodes without the devices that they claim",
    "NodeDeclaredFeatures": "pods are put on nodes whose kubelet lacks a feature that they need",
}

#: Filters that also score.
_ALSO_SCORE: Final = frozenset(
    {"TaintToleration", "NodeAffinity", "NodeResourcesFit", "VolumeBinding", "PodTopologySpread", "InterPodAffinity", "DynamicResources"}
)

#: Samples in a row that must agree before the advice says "never".
ENOUGH_SAMPLES: Final = 50
_LATELY: Final = f"the last {ENOUGH_SAMPLES * SAMPLE_EVERY} decisions (a sample of one in {SAMPLE_EVERY})"


@dataclass(frozen=True, slots=True)
class Recommendation:
    """One piece of advice.

    Attributes:
        reason: word for programs.
        message: sentences for people; they name a remedy.
        path: the field of the profile that it is about.
    """

    reason: str
    message: str
    path: str = "spec"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Facts of the cluster that a profile is for. A fact that is None is not known.

    Attributes:
        resources: the resources that its nodes offer. An empty collection says nothing: there is no node yet.
        assigning: an admission is installed that gives profiles to pods.
    """

    resources: Container[str] | None = None
    assigning: bool | None = None


UNKNOWN_SURROUNDINGS: Final = Surroundings()


def advise(
    profile: ResolvedProfile,
    scorers: Sequence[type[Plugin]],
    impact: ScoreImpact,
    catalogue: Mapping[str, type[Plugin]] = MappingProxyType({}),
    around: Surroundings = UNKNOWN_SURROUNDINGS,
) -> tuple[Recommendation, ...]:
    """Advise the author of a profile in effect.

    Args:
        profile: the resolved profile.
        scorers: classes of its score plugins.
        impact: effect of these plugins on decisions since the profile took effect.
        catalogue: the plugins that exist here.
        around: the cluster.
    """
    chosen = {each.name for each in scorers if _has_own_weight(each, profile.weights[each.name])}
    return (*advise_beforehand(profile, catalogue, around), *_drowning(profile, chosen), *_ineffective(profile, scorers, impact))


def advise_beforehand(
    profile: ResolvedProfile,
    catalogue: Mapping[str, type[Plugin]] = MappingProxyType({}),
    around: Surroundings = UNKNOWN_SURROUNDINGS,
) -> tuple[Recommendation, ...]:
    """Advise the author of a profile that need not be in effect, such as one in a file."""
    return (
        *_instead_of_kube_scheduler(profile),
        *_unprotected(profile),
        *_without_effect(profile, catalogue),
        *_without_resource(profile, catalogue, around),
        *_not_given(profile, around),
    )


def _without_effect(profile: ResolvedProfile, catalogue: Mapping[str, type[Plugin]]) -> Iterator[Recommendation]:
    """Find settings without an effect: arguments of a plugin that is off, and a plugin whose arguments leave it nothing to do."""
    for name in profile.unused_args:
        said = f"pluginConfig has arguments for {name}, which the profile does not run, so they have no effect."
        yield Recommendation(ARGUMENTS_UNUSED, f"{said} Enable {name} in spec.plugins, or remove them.", "spec.pluginConfig")
    for name, args in profile.args.items():
        idle = catalogue[name].idle_because(args) if name in catalogue else ""
        if idle:
            yield Recommendation(PLUGIN_IDLE, f"{name} is enabled, and {idle}. Give it arguments in spec.pluginConfig.", "spec.plugins")


def _without_resource(profile: ResolvedProfile, catalogue: Mapping[str, type[Plugin]], around: Surroundings) -> Iterator[Recommendation]:
    """Find plugins whose arguments name extended resources that no node offers."""
    known = around.resources
    if known is None or CPU not in known:  # without a node, or before nodes are listed
        return
    for name, args in profile.args.items():
        named = catalogue[name].counted_resources(args) if name in catalogue else ()
        extended = [each for each in dict.fromkeys(named) if is_extended_resource(each)]
        if extended and not any(each in known for each in extended):
            which = " or ".join(extended)
            yield Recommendation(
                NO_SUCH_RESOURCE,
                f"{name} counts {which}, which no node of this cluster offers, so it has nothing to count. "
                f"Name a resource that nodes have in the arguments of {name}.",
                "spec.pluginConfig",
            )


def _not_given(profile: ResolvedProfile, around: Surroundings) -> Iterator[Recommendation]:
    """Find a profile that selects pods, in a cluster without the admission that reads selectors."""
    pods = profile.settings.pods
    if around.assigning is False and pods is not None and pods.assigns:
        yield Recommendation(
            NOT_ASSIGNED,
            "spec.pods selects pods, and no admission in this cluster gives profiles to pods, so only pods that name the schedulerName get "
            "this one. Install manifests/components/profile-assignment.",
            "spec.pods",
        )


def _unprotected(profile: ResolvedProfile) -> Iterator[Recommendation]:
    """Find filters that are off, each with the consequence. kube-scheduler allows that, too, and gives no warning."""
    filters = profile.at(ExtensionPoint.FILTER)
    for name, consequence in _WITHOUT.items():
        if name in filters:
            continue
        instead = f" To leave out its score alone, enable it and set weights.{name} to 0." if name in _ALSO_SCORE else ""
        yield Recommendation(FILTER_IS_OFF, f"The filter {name} is off: {consequence}.{instead}", "spec.plugins")


def _instead_of_kube_scheduler(profile: ResolvedProfile) -> Iterator[Recommendation]:
    """Find a profile for kube-scheduler's own pods. Two schedulers of the same pods overfill nodes: neither counts the other's bindings."""
    if profile.scheduler_name == DEFAULT_SCHEDULER_NAME and profile.shadows is None and not profile.settings.paused:
        yield Recommendation(
            DEFAULT_SCHEDULER,
            f"The profile takes the pods of schedulerName {DEFAULT_SCHEDULER_NAME}, which kube-scheduler places in every cluster: it must "
            "be switched off, as two schedulers of the same pods overfill nodes. Otherwise make a profile for another schedulerName and "
            "delete this one.",
            "spec.schedulerName",
        )


def _drowning(profile: ResolvedProfile, chosen: Collection[str]) -> Iterator[Recommendation]:
    """Find a chosen weight that is larger than all others together: no other plugin can outvote its plugin's full score.

    If the author set all other weights to 0, the remaining default is larger than the rest. That is no news to the author.
    """
    # Known without counting decisions, so it is said at once (decision 0016).
    total = sum(profile.weights.values()) + sum(e.weight for e in profile.extenders if e.prioritize_verb)
    for name, weight in profile.weights.items():
        others = total - weight
        if 0 < others < weight and name in chosen:
            yield Recommendation(
                DROWNS_OTHERS,
                f"{name} has weight {weight}, all others together have {others}: where it gives one node {MAX_NODE_SCORE} points more than "
                f"another, nothing can outvote it. To let the others have a say, set weights.{name} to {others} or less.",
            )


def _ineffective(profile: ResolvedProfile, scorers: Sequence[type[Plugin]], impact: ScoreImpact) -> Iterator[Recommendation]:
    for plugin in scorers:
        name, weight = plugin.name, profile.weights[plugin.name]
        # On most clusters some default plugin has nothing to do. A condition that is always there is not read (decision 0016).
        if not _chosen(plugin, weight, profile.args[name]):
            continue
        if impact.idle(name) >= ENOUGH_SAMPLES:
            yield Recommendation(
                NOTHING_TO_SCORE,
                f"{name} (weight {weight}) had nothing to score in {_LATELY}: all nodes got the same from it. Check its arguments and the "
                f"fields of pods and nodes that it reads, or set weights.{name} to 0.",
            )
        elif impact.undecisive(name) >= ENOUGH_SAMPLES:
            yield Recommendation(
                NEVER_DECIDES,
                f"{name} (weight {weight}) changed no outcome of {_LATELY}: without it the same nodes would have been best. "
                f"Raise weights.{name} if it shall count, or set it to 0.",
            )


def _has_own_weight(plugin: type[Plugin], weight: int) -> bool:
    return plugin.name not in DEFAULT_PLUGINS or weight != plugin.default_weight


def _chosen(plugin: type[Plugin], weight: int, args: object) -> bool:
    """Return whether the author chose this plugin's weight or arguments, instead of having it by default."""
    return _has_own_weight(plugin, weight) or args != plugin.Args()
