"""The SchedulingProfile custom resource, as decoded: what people write, before it is checked and defaulted.

`spec` takes what a KubeSchedulerConfiguration profile has, and adds `preset`, `weights`, `backoff`, `extenders` and `paused`. Checks and
defaults live in `placewright.profiles`.
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


class ProfileSpec(KubeObject, frozen=True):
    """`spec` of a SchedulingProfile."""

    scheduler_name: str = DEFAULT_SCHEDULER_NAME
    preset: str | None = None
    plugins: Plugins = Plugins()
    plugin_config: list[PluginConfig] | None = None
    percentage_of_nodes_to_score: int | None = None
    weights: dict[str, int] | None = None
    backoff: Backoff = Backoff()
    extenders: list[ExtenderSpec] | None = None
    paused: bool = False


class QueueSizes(KubeObject, frozen=True):
    """How many of the profile's pods wait where; `total` is their sum, for the printer column."""

    total: int = 0
    active: int = 0
    backoff: int = 0
    unschedulable: int = 0
    gated: int = 0


class ProfileStatus(KubeObject, frozen=True):
    """`status` of a SchedulingProfile; `active_generation` is what decisions really use."""

    observed_generation: int = 0
    active_generation: int = 0
    conditions: list[Condition] | None = None
    pending: QueueSizes = QueueSizes()


class SchedulingProfile(KubeObject, frozen=True):
    """One profile: how pods that name its `schedulerName` are placed."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ProfileSpec = msgspec.field(default_factory=ProfileSpec)
    status: ProfileStatus = msgspec.field(default_factory=ProfileStatus)
