"""The SchedulingProfile custom resource, as decoded: what people write, before it is checked and defaulted.

`spec` has the fields of a KubeSchedulerConfiguration profile. It adds `preset`, `weights`, `backoff`, `extenders`, `pods`, `paused` and
the fields of a shadow. The annotation of a field says what it means and may hold. The definition (CRD), the schemas, docs/reference.md and
the checks of numbers are made from it. docs/contributing.md adds a field. Rules across fields and defaults are in `placewright.profiles`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec

from placewright.api.compatibility import AUTO, CHOICES
from placewright.api.extenders import ExtenderSpec
from placewright.api.fairness import Fairness
from placewright.api.fieldmeanings import ATOMIC, between, counts, keyed_by, means
from placewright.api.objects import Condition, KubeObject, ObjectMeta, OwnerObject
from placewright.api.preemption import PreemptionSpec
from placewright.api.profilelimits import (
    MAX_BACKOFF_SECONDS,
    MAX_GIVE_UP_SECONDS,
    MAX_ITEMS,
    MAX_NAME_LENGTH,
    MAX_PERCENTAGE,
    MAX_SHADOW_BUDGET,
    MAX_WEIGHT,
    MIN_BACKOFF_SECONDS,
    MIN_GIVE_UP_SECONDS,
    MIN_SHADOW_BUDGET,
)
from placewright.api.profilepods import ProfilePods
from placewright.api.writers import Writer

GROUP: Final = "placewright.dev"
VERSION: Final = "v1alpha1"
PLURAL: Final = "schedulingprofiles"
KIND: Final = "SchedulingProfile"
DEFAULT_SCHEDULER_NAME: Final = "default-scheduler"
#: Values of `spec.mode`.
LIVE: Final = "Live"
SHADOW: Final = "Shadow"
#: Fields of `spec` that go into effect for the whole profile as they are written. People are shown them in this order. All other fields
#: are merged with the defaults first (`profiles/resolve.py`).
SETTINGS: Final = (
    "paused", "percentage_of_nodes_to_score", "backoff", "give_up_after_seconds", "fairness", "pods", "preemption",
    "compatibility", "feature_gates",
)  # fmt: skip
#: Fields of `spec`, as documents spell them, that decide where a pod goes: a shadow tries them, and `profiles promote` takes them over.
DECIDING: Final = ("preset", "plugins", "pluginConfig", "percentageOfNodesToScore", "weights", "compatibility", "featureGates")

_NAME: Final[Mapping[str, Any]] = {"minLength": 1, "maxLength": MAX_NAME_LENGTH}
#: A list that server-side apply merges by the name of its items, so that two owners can each own one.
_BY_NAME: Final[Mapping[str, Any]] = {**keyed_by("name"), "maxItems": MAX_ITEMS}


def _runs(text: str) -> msgspec.Meta:
    """Describe an extension point's plugins."""
    return means(f"{text} What is named here runs here, besides what multiPoint brings; see multiPoint.")


class PluginRef(KubeObject, frozen=True):
    """A plugin named at an extension point; weight 0 or absent means the plugin's default."""

    name: Annotated[str, means("The plugin's name.", **_NAME)]
    weight: Annotated[
        int | None,
        between(0, MAX_WEIGHT, "0: the default"),
        means("Factor of its score; 0 or absent: 1 for kube-scheduler's plugins, else the plugin's own default.", format="int32"),
    ] = None


class PluginSet(KubeObject, frozen=True):
    """The plugins switched on and off at one extension point; `*` in disabled means all."""

    enabled: Annotated[list[PluginRef] | None, means("Plugins to run, in order.", **_BY_NAME)] = None
    disabled: Annotated[
        list[PluginRef] | None,
        means("Plugins that multiPoint or the defaults would bring and that shall not run; '*' for all.", **_BY_NAME),
    ] = None


class Plugins(KubeObject, frozen=True):
    """Plugin sets per extension point; `multi_point` stands for every point a plugin implements."""

    multi_point: Annotated[
        PluginSet,
        means(
            "Plugins for every extension point that they implement. The default plugins are here from the start: naming one "
            "again changes its weight, disabling one drops it, disabling '*' drops all.",
        ),
    ] = PluginSet()
    pre_enqueue: Annotated[PluginSet, _runs("Keeps pods out of the active queue until they may be tried.")] = PluginSet()
    queue_sort: Annotated[PluginSet, _runs("Orders the queue; exactly one plugin, the same in all profiles.")] = PluginSet()
    pre_filter: Annotated[PluginSet, _runs("Examines a pod before any node.")] = PluginSet()
    filter: Annotated[PluginSet, _runs("Says which nodes can hold a pod.")] = PluginSet()
    post_filter: Annotated[PluginSet, _runs("Tries to make room when no node fits.")] = PluginSet()
    pre_score: Annotated[PluginSet, _runs("Examines the feasible nodes before scoring.")] = PluginSet()
    score: Annotated[PluginSet, _runs("Ranks the feasible nodes.")] = PluginSet()
    reserve: Annotated[PluginSet, _runs("Keeps what a pod needs while it is being bound.")] = PluginSet()
    permit: Annotated[PluginSet, _runs("Allows, refuses or delays binding.")] = PluginSet()
    pre_bind: Annotated[PluginSet, _runs("Does what must be done before binding.")] = PluginSet()
    bind: Annotated[PluginSet, _runs("Writes the binding; at least one plugin.")] = PluginSet()
    post_bind: Annotated[PluginSet, _runs("Learns that a pod was bound.")] = PluginSet()


class PluginConfig(KubeObject, frozen=True):
    """Arguments of one plugin, not yet checked against the plugin's own schema."""

    name: Annotated[str, means("The plugin's name.", **_NAME)]
    args: Annotated[dict[str, Any] | None, means("Its arguments; their fields are checked by the operator.")] = None


class Backoff(KubeObject, frozen=True):
    """How long a rejected pod waits: doubling from initial to max, in seconds. Max 0 disables backoff."""

    initial_seconds: Annotated[
        float,
        between(MIN_BACKOFF_SECONDS, MAX_BACKOFF_SECONDS),
        means("Seconds after the first rejection; doubles with every further one."),
    ] = 1.0
    max_seconds: Annotated[
        float,
        means("Seconds at which the doubling ends, at least initialSeconds; 0: no backoff.", minimum=0, maximum=MAX_BACKOFF_SECONDS),
    ] = 10.0


class ShadowSettings(KubeObject, frozen=True):
    """The costs a shadow may have: a share of the time, in percent, with all its work counted."""

    budget_percent: Annotated[
        float,
        between(MIN_SHADOW_BUDGET, MAX_SHADOW_BUDGET),
        means("The shadow takes at most this share of the time, in percent; it skips pods for which no time is left."),
    ] = 5.0


class ProfileSpec(KubeObject, frozen=True):
    """`spec` of a SchedulingProfile. A live profile without a `scheduler_name` claims no pods, and is refused."""

    scheduler_name: Annotated[
        str,
        means(
            "The pods whose spec.schedulerName is this are placed by this profile. Required, but for a Shadow, which claims none. "
            "Immutable.",
            **_NAME,
        ),
    ] = ""
    preset: Annotated[
        str | None,
        means("The settings that the profile starts from; its other fields override them. Absent: default, as kube-scheduler."),
    ] = None
    plugins: Annotated[Plugins, means("Which plugins run at which extension point, as in a KubeSchedulerConfiguration.")] = Plugins()
    plugin_config: Annotated[
        list[PluginConfig] | None,
        means("Arguments of plugins, as in a KubeSchedulerConfiguration.", **_BY_NAME),
    ] = None
    percentage_of_nodes_to_score: Annotated[
        int | None,
        between(0, MAX_PERCENTAGE, "0: all nodes"),
        means("The share of the nodes to examine for a pod, in percent. 0 or absent: all.", format="int32"),
    ] = None
    weights: Annotated[
        dict[str, int] | None,
        means(
            "Score weight by plugin name; goes before the weights in plugins. 0: the plugin does not score, but still filters.",
            maxProperties=MAX_ITEMS,
            additionalProperties={"type": "integer", "format": "int32", "minimum": 0, "maximum": MAX_WEIGHT},
        ),
    ] = None
    backoff: Annotated[Backoff, means("How long a rejected pod waits before it is tried again.", default={})] = Backoff()
    give_up_after_seconds: Annotated[
        float | None,
        between(MIN_GIVE_UP_SECONDS, MAX_GIVE_UP_SECONDS),
        means(
            "A rejected pod that has waited so many seconds since its creation is given up: it gets the condition placewright.dev/GivenUp "
            "and an event, and is tried again only after a change that may help it. Absent: no pod is given up.",
        ),
    ] = None
    fairness: Annotated[
        Fairness | None,
        means("Whose turn it is: tenants take turns among pods of one priority. Absent: the order is the QueueSort plugin's alone."),
    ] = None
    extenders: Annotated[
        list[ExtenderSpec] | None,
        means(
            "HTTP extenders, as in a KubeSchedulerConfiguration; the ignorable ones are called last.",
            maxItems=MAX_ITEMS,
            **ATOMIC,
        ),
    ] = None
    pods: Annotated[ProfilePods | None, means("Which pods get the profile, and which namespaces may use it.")] = None
    preemption: Annotated[
        PreemptionSpec | None,
        means("Which pods this profile's pods may displace, when, and how many. Absent: as kube-scheduler."),
    ] = None
    compatibility: Annotated[
        str,
        means(
            "The version of kube-scheduler whose rules hold where versions differ. auto: the API server's; else a version such as '1.37'.",
            enum=list(CHOICES),
        ),
    ] = AUTO
    feature_gates: Annotated[
        dict[str, bool] | None,
        means(
            "Switches a rule that versions of kube-scheduler differ in, by the name of its feature gate. Goes before compatibility.",
            maxProperties=MAX_ITEMS,
            additionalProperties={"type": "boolean"},
        ),
    ] = None
    paused: Annotated[bool, means("Take no new pods; those in flight are finished.")] = False
    mode: Annotated[
        str,
        means(
            "Live: the profile places the pods of its schedulerName. Shadow: it decides the pods of another profile beside that one, "
            "binds nothing, asks no extender, and claims no schedulerName; its status compares.",
            enum=[LIVE, SHADOW],
        ),
    ] = LIVE
    shadows: Annotated[
        str | None,
        means("For a Shadow only: the name of the live SchedulingProfile whose pods it decides, too.", maxLength=MAX_NAME_LENGTH),
    ] = None
    shadow: Annotated[ShadowSettings | None, means("For a Shadow only: the share of the time that it may take.")] = None

    @property
    def settings(self) -> ProfileSpec:
        """A spec with this one's values of the fields in `SETTINGS`, and no others.

        A percentage of 0 means all nodes, as none does, and becomes none; so do no feature gates, fairness without tenants, and rules of
        preemption that change nothing. Two profiles with equal effect have equal settings.
        """
        said = {name: getattr(self, name) for name in SETTINGS}
        said["percentage_of_nodes_to_score"] = self.percentage_of_nodes_to_score or None
        said["feature_gates"] = self.feature_gates or None
        said["preemption"] = self.preemption if self.preemption is not None and self.preemption.rules else None
        said["fairness"] = self.fairness if self.fairness is not None and self.fairness.takes_turns else None
        return ProfileSpec(**said)

    @property
    def is_shadow(self) -> bool:
        """Whether it decides beside another profile, and binds nothing."""
        return self.mode == SHADOW


class QueueSizes(KubeObject, frozen=True):
    """How many of the profile's pods wait where; `total` is their sum, for the printer column."""

    total: Annotated[int, counts("All of them.")] = 0
    active: Annotated[int, counts("Ready to be tried.")] = 0
    backoff: Annotated[int, counts("Waiting for their backoff to end.")] = 0
    unschedulable: Annotated[int, counts("Rejected, waiting for a change in the cluster.")] = 0
    gated: Annotated[int, counts("Not to be tried yet.")] = 0


class Regret(KubeObject, frozen=True, omit_defaults=False):
    """How much worse one side's nodes are than the other's, by the other's totals, over `decisions`; points, and percent of the best."""

    decisions: Annotated[int, counts("The number of decisions that the regret is computed from.")] = 0
    mean_points: Annotated[float, means("The mean, in points of the total.")] = 0.0
    max_points: Annotated[float, means("The maximum, in points of the total.")] = 0.0
    mean_percent: Annotated[float, means("The mean, in percent of the best node's total.")] = 0.0


class Allocation(KubeObject, frozen=True, omit_defaults=False):
    """Requested share of a resource over the nodes that offer it, in percent: their mean and standard deviation."""

    mean_percent: Annotated[float, means("Mean over the nodes that offer it.")] = 0.0
    deviation_percent: Annotated[float, means("Standard deviation over these nodes.")] = 0.0


class ShadowUse(KubeObject, frozen=True, omit_defaults=False):
    """A resource under the shadow's placements, and as it is."""

    name: Annotated[str, means("Of the resource.")]
    shadow: Annotated[Allocation | None, means("With pods where the shadow put them. Absent where no node offers it.")] = None
    live: Annotated[Allocation | None, means("With pods where they are. Absent where no node offers it.")] = None


class EmptyNodes(KubeObject, frozen=True, omit_defaults=False):
    """Nodes without a pod other than those of DaemonSets."""

    shadow: Annotated[int, counts("With pods where the shadow put them.")] = 0
    live: Annotated[int, counts("With pods where they are.")] = 0


class ShadowStatus(KubeObject, frozen=True, omit_defaults=False):
    """A shadow's figures since `since`; it makes a decision each time its live profile decides a pod."""

    since: Annotated[
        str,
        means("The time from which the figures count: when the shadow's or the live profile's generation took effect."),
    ] = ""
    live_generation: Annotated[int, counts("The generation of the live profile that it is compared with.")] = 0
    pods: Annotated[int, counts("Decisions of the live profile to compare with.")] = 0
    decided: Annotated[int, counts("Decisions of the live profile that the shadow has made, too.")] = 0
    sampled_percent: Annotated[
        float,
        means("The share of decisions that the shadow has made, in percent; decisions still in its backlog do not count."),
    ] = 100.0
    agreement_percent: Annotated[
        float | None,
        means("The share of pods that both put on the same node, among the pods for which at least one of both found a node, in percent."),
    ] = None
    same: Annotated[int, counts("Both chose the same node.")] = 0
    other: Annotated[int, counts("They chose different nodes.")] = 0
    live_only: Annotated[int, counts("The live profile found a node, the shadow none.")] = 0
    shadow_only: Annotated[int, counts("The shadow found a node, the live profile none.")] = 0
    neither: Annotated[int, counts("Neither found one.")] = 0
    not_feasible: Annotated[int, counts("The live profile's node could not have held the pod where the shadow placed all before.")] = 0
    regret: Annotated[Regret, means("How much worse the live profile's nodes are than the shadow's, by the shadow's totals.")] = Regret()
    live_regret: Annotated[
        Regret,
        means(
            "How much worse the shadow's nodes are than the live profile's, by the live totals, where the shadow's node was among the few "
            "best nodes that some live decisions record.",
        ),
    ] = Regret()
    empty_nodes: Annotated[EmptyNodes, means("Nodes without a pod other than those of DaemonSets.")] = EmptyNodes()
    resources: Annotated[
        list[ShadowUse] | None,
        means("The share of each resource that would be requested, and the share that is.", **keyed_by("name")),
    ] = None
    pending: Annotated[int, counts("Pods that run on a node, and for which the shadow finds none now.")] = 0
    backlog: Annotated[int, counts("Events and decisions that the shadow has not processed yet.")] = 0
    restarts: Annotated[int, counts("How often the shadow fell too far behind, and began anew from the current state of the cluster.")] = 0
    time_percent: Annotated[float, means("The share of the time that the shadow took, in percent.")] = 0.0
    errors: Annotated[int, counts("Errors inside the shadow; they do not affect the live profile.")] = 0
    last_error: Annotated[str, means("The last of these errors.")] = ""


class ProfileStatus(KubeObject, frozen=True):
    """`status` of a SchedulingProfile; `active_generation` is what decisions really use."""

    observed_generation: Annotated[int, counts("The generation that the operator checked last.")] = 0
    active_generation: Annotated[int, counts("The generation that decisions use; 0: none.")] = 0
    conditions: Annotated[
        list[Condition] | None,
        means(
            "Ready always; Reconciling, Stalled, Advice, PluginHanging while they are true; PluginFailing once one failed.",
            **keyed_by("type"),
        ),
    ] = None
    pending: Annotated[QueueSizes, means("The profile's pods in the queue.")] = QueueSizes()
    shadow: Annotated[ShadowStatus | None, means("For a Shadow only: how it compares with the live profile.")] = None


class SchedulingProfile(OwnerObject, frozen=True):
    """One profile: how pods that name its `schedulerName` are placed."""

    spec: Annotated[ProfileSpec, Writer.OWNER] = msgspec.field(default_factory=ProfileSpec)
    status: Annotated[ProfileStatus, Writer.OWNER] = msgspec.field(default_factory=ProfileStatus)


def default_profile(name: str = "", **spec: Any) -> SchedulingProfile:
    """Return kube-scheduler's default profile, for the pods of `default-scheduler`, with other fields of `spec`. No object has it."""
    spec.setdefault("scheduler_name", DEFAULT_SCHEDULER_NAME)
    return SchedulingProfile(metadata=ObjectMeta(name=name), spec=ProfileSpec(**spec))
