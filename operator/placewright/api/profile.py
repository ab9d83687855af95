"""The SchedulingProfile custom resource, as decoded: what people write, before it is checked and defaulted.

`spec` takes what a KubeSchedulerConfiguration profile has, and adds `preset`, `weights`, `backoff`, `extenders`, `paused` and what makes it
a shadow of another profile. Checks and defaults live in `placewright.profiles`.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from placewright.api.extenders import ExtenderSpec
from placewright.api.objects import Condition, KubeObject, ObjectMeta

GROUP: Final = "placewright.dev"
VERSION: Final = "v1alpha1"
PLURAL: Final = "schedulingprofiles"
KIND: Final = "SchedulingProfile"
DEFAULT_SCHEDULER_NAME: Final = "default-scheduler"
#: Values of `spec.mode`.
LIVE: Final = "Live"
SHADOW: Final = "Shadow"


class PluginRef(KubeObject, frozen=True):
    """A plugin named at an extension point; weight 0 or absent means the plugin's default."""

    name: str
    weight: int | None = None


class PluginSet(KubeObject, frozen=True):
    """What is switched on and off at one extension point; `*` in disabled means all."""

    enabled: list[PluginRef] | None = None
    disabled: list[PluginRef] | None = None


class Plugins(KubeObject, frozen=True):
    """Plugin sets per extension point; `multi_point` stands for every point a plugin implements."""

    multi_point: PluginSet = PluginSet()
    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()


class PluginConfig(KubeObject, frozen=True):
    """Arguments of one plugin, not yet checked against the plugin's own schema."""

    name: str
    args: dict[str, Any] | None = None


class Backoff(KubeObject, frozen=True):
    """How long a rejected pod waits: doubling from initial to max, in seconds. Max 0 disables backoff."""

    initial_seconds: float = 1.0
    max_seconds: float = 10.0


class ShadowSettings(KubeObject, frozen=True):
    """What a shadow may cost: so many percent of the time, all that it does counted."""

    budget_percent: float = 5.0


class ProfileSpec(KubeObject, frozen=True):
    """`spec` of a SchedulingProfile. A live profile without a `scheduler_name` does not say whose pods it takes, and is refused."""

    scheduler_name: str = ""
    preset: str | None = None
    plugins: Plugins = Plugins()
    plugin_config: list[PluginConfig] | None = None
    percentage_of_nodes_to_score: int | None = None
    weights: dict[str, int] | None = None
    backoff: Backoff = Backoff()
    extenders: list[ExtenderSpec] | None = None
    paused: bool = False
    mode: str = LIVE
    shadows: str | None = None
    shadow: ShadowSettings | None = None

    @property
    def is_shadow(self) -> bool:
        """Whether it decides beside another profile, and binds nothing."""
        return self.mode == SHADOW


class QueueSizes(KubeObject, frozen=True):
    """How many of the profile's pods wait where; `total` is their sum, for the printer column."""

    total: int = 0
    active: int = 0
    backoff: int = 0
    unschedulable: int = 0
    gated: int = 0


class Regret(KubeObject, frozen=True, omit_defaults=False):
    """How much worse one side's nodes are than the other's, by the other's totals, over `decisions`; points, and percent of the best."""

    decisions: int = 0
    mean_points: float = 0.0
    max_points: float = 0.0
    mean_percent: float = 0.0


class Allocation(KubeObject, frozen=True, omit_defaults=False):
    """Requested share of a resource over the nodes that offer it, in percent: their mean and standard deviation."""

    mean_percent: float = 0.0
    deviation_percent: float = 0.0


class ShadowUse(KubeObject, frozen=True, omit_defaults=False):
    """A resource under the shadow's placements, and as it is."""

    name: str
    shadow: Allocation = Allocation()
    live: Allocation = Allocation()


class EmptyNodes(KubeObject, frozen=True, omit_defaults=False):
    """Nodes without a pod other than those of DaemonSets."""

    shadow: int = 0
    live: int = 0


class ShadowStatus(KubeObject, frozen=True, omit_defaults=False):
    """What came of a shadow since `since`; the decisions are those that it made when its live profile decided a pod."""

    since: str = ""
    live_generation: int = 0
    pods: int = 0
    decided: int = 0
    sampled_percent: float = 100.0
    agreement_percent: float | None = None
    same: int = 0
    other: int = 0
    live_only: int = 0
    shadow_only: int = 0
    neither: int = 0
    not_feasible: int = 0
    regret: Regret = Regret()
    live_regret: Regret = Regret()
    empty_nodes: EmptyNodes = EmptyNodes()
    resources: list[ShadowUse] | None = None
    pending: int = 0
    backlog: int = 0
    restarts: int = 0
    time_percent: float = 0.0
    errors: int = 0
    last_error: str = ""


class ProfileStatus(KubeObject, frozen=True):
    """`status` of a SchedulingProfile; `active_generation` is what decisions really use."""

    observed_generation: int = 0
    active_generation: int = 0
    conditions: list[Condition] | None = None
    pending: QueueSizes = QueueSizes()
    shadow: ShadowStatus | None = None


class SchedulingProfile(KubeObject, frozen=True):
    """One profile: how pods that name its `schedulerName` are placed."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ProfileSpec = msgspec.field(default_factory=ProfileSpec)
    status: ProfileStatus = msgspec.field(default_factory=ProfileStatus)


def default_profile(name: str = "", **spec: Any) -> SchedulingProfile:
    """kube-scheduler's default profile, for the pods of `default-scheduler`, with what `spec` says besides; of no object."""
    spec.setdefault("scheduler_name", DEFAULT_SCHEDULER_NAME)
    return SchedulingProfile(metadata=ObjectMeta(name=name), spec=ProfileSpec(**spec))
