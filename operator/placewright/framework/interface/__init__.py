"""The plugin contract: the same for our plugins and for plugins of other packages.

A plugin is a class with a `name`, a class of arguments, and one or more extension points; each point is a base class with a method to
write. Import everything from here; the modules of this package hold one idea each:

    columns            rows, columns of answers, and `Reads`: what a column depends on
    plugin             `Plugin`: name, arguments, signature, events, start and close, metrics
    queuepoints        PreEnqueue, QueueSort; groups of pods
    filterpoints       PreFilter, Filter, PostFilter
    scorepoints        PreScore, Score, normalisation; preparation of long decisions
    bindpoints         Reserve, Permit, PreBind, Bind, PostBind
    cyclestate         what plugins remember during one attempt
    diagnosis          why no node fits, and what PostFilter made of it
    handle             the scheduler as a plugin may use it

A pod passes the points in this order:

    PreEnqueue · QueueSort · [PreFilter · Filter · PostFilter (nothing fits) · PreScore · Score · normalise · Reserve · Permit]
    · [wait on Permit · PreBind · Bind · PostBind]

The first bracket is the scheduling cycle, one pod at a time; it never awaits, so nothing changes between its steps. The second is the
binding cycle, many at once. (Between the members of a large group, and while an extender is asked, other work has its turn.)

Filter and Score see **all nodes at once**: they get an array of node rows and answer with an array of the same length. A column may read
only a node and its pods (`reads`). Then it is computed once for pods that look alike (`sign`), and later only in the rows that changed.

Who calls which points:

    live                  all of them
    simulate, tune,       all of them, by the same scheduler in virtual time; the ports write into the simulation's own objects
    compare
    shadow                PreFilter, Filter, PreScore, Score, on a cluster of its own with plugins of its own
    explain               PreEnqueue, PreFilter, Filter, PreScore, Score, remedies; on the live columns where an operator answers
    evaluate              PreEnqueue, PreFilter, Filter, PostFilter, PreScore, Score, on a cluster made from files
    self-check            PreFilter, Filter: whether a pod that waits would fit by now

So a method may be called for a pod that will not be bound, and twice for one attempt. The memory that a plugin has of a pod begins in
Reserve and ends in Unreserve or PostBind.

The table says what the queue does after each status other than SUCCESS. "Told as" is the reason of the pod's PodScheduled condition.
"After its event" says where the pod goes when an event happens that this plugin registered. That holds if the hint answers QUEUE and the
pod's backoff has not ended. "Stays" means that no event of this plugin moves the pod. A test reads this table and tries every line.

    | point      | status                         | the pod is    | told as        | after its event |
    |------------|--------------------------------|---------------|----------------|-----------------|
    | PreEnqueue | UNSCHEDULABLE                  | gated         | -              | active          |
    | PreEnqueue | UNSCHEDULABLE_AND_UNRESOLVABLE | gated         | -              | active          |
    | PreEnqueue | PENDING                        | gated         | -              | active          |
    | PreEnqueue | ERROR                          | gated         | -              | active          |
    | PreFilter  | UNSCHEDULABLE                  | unschedulable | Unschedulable  | backoff         |
    | PreFilter  | UNSCHEDULABLE_AND_UNRESOLVABLE | unschedulable | Unschedulable  | backoff         |
    | PreFilter  | PENDING                        | unschedulable | Unschedulable  | active          |
    | PreFilter  | ERROR                          | backoff       | SchedulerError | stays           |
    | Filter     | UNSCHEDULABLE                  | unschedulable | Unschedulable  | backoff         |
    | Filter     | UNSCHEDULABLE_AND_UNRESOLVABLE | unschedulable | Unschedulable  | backoff         |
    | Filter     | PENDING                        | unschedulable | Unschedulable  | active          |
    | Filter     | ERROR                          | backoff       | SchedulerError | stays           |
    | PostFilter | UNSCHEDULABLE                  | unschedulable | Unschedulable  | stays           |
    | PostFilter | UNSCHEDULABLE_AND_UNRESOLVABLE | unschedulable | Unschedulable  | stays           |
    | PostFilter | ERROR                          | unschedulable | Unschedulable  | stays           |
    | PreScore   | UNSCHEDULABLE                  | backoff       | SchedulerError | stays           |
    | PreScore   | UNSCHEDULABLE_AND_UNRESOLVABLE | backoff       | SchedulerError | stays           |
    | PreScore   | PENDING                        | backoff       | SchedulerError | stays           |
    | PreScore   | ERROR                          | backoff       | SchedulerError | stays           |
    | Reserve    | UNSCHEDULABLE                  | unschedulable | Unschedulable  | backoff         |
    | Reserve    | UNSCHEDULABLE_AND_UNRESOLVABLE | unschedulable | Unschedulable  | backoff         |
    | Reserve    | PENDING                        | unschedulable | Unschedulable  | active          |
    | Reserve    | ERROR                          | backoff       | SchedulerError | stays           |
    | Permit     | UNSCHEDULABLE                  | unschedulable | Unschedulable  | backoff         |
    | Permit     | UNSCHEDULABLE_AND_UNRESOLVABLE | unschedulable | Unschedulable  | backoff         |
    | Permit     | PENDING                        | unschedulable | Unschedulable  | active          |
    | Permit     | ERROR                          | backoff       | SchedulerError | stays           |
    | Permit     | WAIT                           | in-flight     | -              | stays           |
    | PreBind    | UNSCHEDULABLE                  | unschedulable | Unschedulable  | backoff         |
    | PreBind    | UNSCHEDULABLE_AND_UNRESOLVABLE | unschedulable | Unschedulable  | backoff         |
    | PreBind    | PENDING                        | unschedulable | Unschedulable  | active          |
    | PreBind    | ERROR                          | backoff       | SchedulerError | stays           |
    | Bind       | UNSCHEDULABLE                  | unschedulable | Unschedulable  | backoff         |
    | Bind       | UNSCHEDULABLE_AND_UNRESOLVABLE | unschedulable | Unschedulable  | backoff         |
    | Bind       | PENDING                        | unschedulable | Unschedulable  | active          |
    | Bind       | ERROR                          | backoff       | SchedulerError | stays           |
    | Bind       | SKIP                           | backoff       | SchedulerError | stays           |

The last line is for a profile in which every Bind plugin skips.

A pod that backs off is made active when its backoff ends: after 1, 2, 4, 8, 10 seconds by default. The backoff follows the number of its
rejections, or of its errors in a row. If the scheduler has nothing else to do, it tries a rejected pod earlier. A pod that failed with an
error waits for the end of its backoff. A pod in the unschedulable set is tried again after five minutes in any case. It is also tried at
the time that PostFilter stated with `PostFilterResult.retry_after`. An event may happen while a pod is being tried. It counts as if it
came right afterwards.
"""

from __future__ import annotations

from placewright.api.errors import BindError, ClaimError, PatchError, VolumeError
from placewright.framework.interface.bindpoints import (
    BindPlugin,
    PermitPlugin,
    PermitResult,
    PostBindPlugin,
    PreBindPlugin,
    ReservePlugin,
)
from placewright.framework.interface.columns import MAX_NODE_SCORE, BoolColumn, IntColumn, Reads, Rejection, Rows
from placewright.framework.interface.cyclestate import CycleState
from placewright.framework.interface.diagnosis import Alternatives, Diagnosis, PostFilterResult
from placewright.framework.interface.filterpoints import (
    FilterPlugin,
    PostFilterPlugin,
    PreFilterPlugin,
    PreFilterResult,
)
from placewright.framework.interface.handle import ROUNDING_SECONDS, Handle, RowChecks, RowTrials
from placewright.framework.interface.plugin import ArgsT, NoArgs, Plugin, PluginMetric
from placewright.framework.interface.queuepoints import (
    PodGroupPlugin,
    PodGroupSettings,
    PreEnqueuePlugin,
    QueueSortPlugin,
)
from placewright.framework.interface.scorepoints import MaxNormalised, PreparingPlugin, PreScorePlugin, ScorePlugin
from placewright.framework.patches import ObjectPatch
from placewright.framework.ports import Binder, ClaimWriter, Extender, Seconds, VolumeWriter, WaitingForPermit
from placewright.framework.status import SKIP, SUCCESS, Code, Status

__all__ = [
    "MAX_NODE_SCORE", "ROUNDING_SECONDS", "SKIP", "SUCCESS", "Alternatives", "ArgsT", "BindError", "BindPlugin", "Binder", "BoolColumn",
    "ClaimError", "ClaimWriter", "Code", "CycleState", "Diagnosis", "Extender", "FilterPlugin", "Handle", "IntColumn", "MaxNormalised",
    "NoArgs", "ObjectPatch", "PatchError", "PermitPlugin", "PermitResult", "Plugin", "PluginMetric", "PodGroupPlugin", "PodGroupSettings",
    "PostBindPlugin", "PostFilterPlugin", "PostFilterResult", "PreBindPlugin", "PreEnqueuePlugin", "PreFilterPlugin", "PreFilterResult",
    "PreScorePlugin", "PreparingPlugin", "QueueSortPlugin", "Reads", "Rejection", "ReservePlugin", "RowChecks", "RowTrials", "Rows",
    "ScorePlugin", "Seconds", "Status", "VolumeError", "VolumeWriter", "WaitingForPermit",
]  # fmt: skip
