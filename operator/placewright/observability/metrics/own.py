"""The metrics that kube-scheduler does not have. Their label `profile` is the SchedulingProfile's name, unless the help says otherwise."""

from __future__ import annotations

from typing import Final

from placewright.observability.metrics.family import counter, exponential, gauge, histogram, info

# --- profiles ------------------------------------------------------------------------------------------------------------------

PROFILE_RELOADS: Final = counter(
    "placewright_profile_reloads_total",
    "Generations of a profile that were judged: 'success', or 'refused', which leaves the last good one in effect.",
    "profile", "result",
)  # fmt: skip
PROFILE_ACTIVE: Final = gauge(
    "placewright_profile_active_generation",
    "The generation of a profile that decides; 0 if none does.",
    "profile", "scheduler_name",
)  # fmt: skip
PROFILE_WANTED: Final = gauge(
    "placewright_profile_wanted_generation",
    "The generation of a profile that was seen last: more than the active one for longer than a moment means that it is refused.",
    "profile", "scheduler_name",
)  # fmt: skip
PROFILE_READY: Final = gauge(
    "placewright_profile_ready",
    "1 if the newest generation of a profile is in effect (its Ready condition is True); the reason is the condition's.",
    "profile", "scheduler_name", "reason",
)  # fmt: skip
SCORE_SHARE: Final = gauge(
    "placewright_plugin_score_share",
    "A plugin's part in the scores of the nodes that were chosen, 0 to 1, since the active generation came into effect.",
    "profile", "plugin",
)  # fmt: skip

PLUGIN_FAILURES: Final = counter(
    "placewright_plugin_failures_total",
    "Exceptions, invalid answers and errors of a profile's plugins, by plugin and extension point.",
    "profile", "plugin", "extension_point",
)  # fmt: skip
PODS_WITHOUT_PROFILE: Final = gauge(
    "placewright_pods_without_profile",
    "Pods that wait and that no profile takes: 'deleted', 'refused', 'hanging', 'misspelt'; scheduler_name: that a profile has or had.",
    "scheduler_name", "reason",
)  # fmt: skip

GIVEN_UP: Final = gauge(
    "placewright_given_up_pods", "Pods that have waited longer than their profile's giveUpAfterSeconds and have no node.", "profile"
)
PODS_GIVEN_UP: Final = counter(
    "placewright_pods_given_up_total", "Pods that were given up and reported, except pods that an earlier leader reported.", "profile"
)

# --- groups --------------------------------------------------------------------------------------------------------------------

GROUPS: Final = gauge(
    "placewright_pod_groups",
    "Groups of pods: 'waiting' (no member has a node), 'placed' (a member has one), 'reserving' (nodes are kept for it).",
    "state",
)
GROUPS_OLDEST: Final = gauge(
    "placewright_pod_groups_oldest_waiting_seconds", "Seconds that the first pod of the oldest waiting group has waited; 0 if none waits."
)

# --- shadows -------------------------------------------------------------------------------------------------------------------

SHADOW_DECISIONS: Final = counter(
    "placewright_shadow_decisions_total",
    "Decisions of a shadow, by their outcome beside the live profile's: 'same', 'other', 'live_only', 'shadow_only', 'neither'.",
    "profile", "outcome",
)  # fmt: skip
SHADOW_PASSED_OVER: Final = counter(
    "placewright_shadow_passed_over_total", "Decisions of the live profile that its shadow had no time for.", "profile"
)
SHADOW_AGREEMENT: Final = gauge(
    "placewright_shadow_agreement_ratio", "Of the pods that either found a node for, the share that both put on the same one.", "profile"
)
SHADOW_REGRET: Final = counter(
    "placewright_shadow_regret_points_total",
    "How much worse one side's nodes are than the other's, in points of the totals of 'shadow' or 'live', summed up.",
    "profile", "totals",
)  # fmt: skip
SHADOW_REGRETTED: Final = counter(
    "placewright_shadow_regret_decisions_total", "The decisions that the regret was counted of.", "profile", "totals"
)
SHADOW_ALLOCATION: Final = gauge(
    "placewright_shadow_allocation_ratio",
    "Requested share of a resource over nodes, 0 to 1, its 'mean' or 'deviation', with pods where the 'shadow' put them or as they 'live'.",
    "profile", "resource", "placements", "statistic",
)  # fmt: skip
SHADOW_EMPTY_NODES: Final = gauge(
    "placewright_shadow_empty_nodes", "Nodes without a pod other than those of DaemonSets, by the same placements.", "profile", "placements"
)
SHADOW_PENDING: Final = gauge("placewright_shadow_pending_pods", "Pods on nodes for which the shadow has none now.", "profile")
SHADOW_BACKLOG: Final = gauge("placewright_shadow_backlog", "Events and decisions that the shadow has not handled yet.", "profile")
SHADOW_SECONDS: Final = counter("placewright_shadow_seconds_total", "Seconds of processing that the shadow took.", "profile")
SHADOW_ERRORS: Final = counter("placewright_shadow_errors_total", "Errors of the shadow, without effect on the live profile.", "profile")
SHADOW_RESTARTS: Final = counter("placewright_shadow_restarts_total", "Times that it fell too far behind and began anew.", "profile")

# --- the replica ---------------------------------------------------------------------------------------------------------------

LEADER: Final = gauge("placewright_leader", "1 if this replica decides and binds, 0 if it stands by.", "identity")
LEADER_TERMS: Final = counter("placewright_leader_terms_total", "Times that this replica took the lead.")
TAKEOVER_SECONDS: Final = gauge(
    "placewright_takeover_seconds", "Seconds for which this replica has led without deciding; 0 if it decides or stands by."
)
COLUMN_BYTES: Final = gauge("placewright_column_bytes", "Bytes of columns that are cached for pods of equal shape.")
COLUMN_BYTES_LIMIT: Final = gauge("placewright_column_bytes_limit", "Most bytes of cached columns: a quarter of the memory limit.")
KEPT_BYTES: Final = gauge(
    "placewright_kept_bytes", "Bytes of caches, including columns, of records, of queued writes, and of events that are not written yet."
)
OBJECT_BYTES: Final = gauge(
    "placewright_object_bytes",
    "Memory that objects take as they were read, in bytes, estimated from samples of a minute ago at most; 'waiting pods' have no node.",
    "resource",
)
SUSPECTS: Final = gauge(
    "placewright_suspect_pods", "Pods that are tried after all others because a decision about their like ended a replica or its term."
)
DECISION_MARKS: Final = counter(
    "placewright_decision_marks_total",
    "Marks of decisions that may end the process: 'opened' before one, 'closed' after it, 'death' counted by the next leader, 'failed'.",
    "outcome",
)
BUILD: Final = info("placewright_build_info", "The version that runs.", "version", "python_version")

# --- what is written and read ----------------------------------------------------------------------------------------------------

BINDINGS: Final = counter(
    "placewright_bindings_total",
    "Outcomes of Bindings: 'bound', 'conflict' (another was faster), 'refused', and on the way there 'retry' and 'lost_answer'.",
    "outcome",
)
UNDER_WAY: Final = gauge(
    "placewright_pods_under_way",
    "Pods in their profile's room: 'on_their_way' to their nodes, or 'aside', waiting for volumes, devices, their group or Retry-After.",
    "scheduler_name", "standing",
)  # fmt: skip
TENANT_WAIT: Final = counter(
    "placewright_tenant_wait_seconds_total",
    "Seconds that active pods waited for their tenant's turn, if a profile has fairness; '(other)': tenants beyond the 50 by name.",
    "scheduler_name", "tenant",
)  # fmt: skip
TENANT_PODS: Final = counter(
    "placewright_tenant_pods_total",
    "Pods that were handed out at their tenant's turn; the seconds divided by these are the mean wait.",
    "scheduler_name", "tenant",
)  # fmt: skip
TENANTS_WAITING: Final = gauge(
    "placewright_tenants_waiting",
    "Tenants that have an active pod, if a profile has fairness, counted at each priority.",
    "scheduler_name",
)
BINDINGS_UNRESOLVED: Final = gauge(
    "placewright_bindings_unresolved", "Bindings without an answer, which may exist; their pods keep their place meanwhile."
)
EVENTS: Final = counter(
    "placewright_events_total",
    "Events about pods: 'recorded', then 'written', or joined to one before as 'repeated', or 'dropped' under overload, or 'failed'.",
    "outcome",
)
STATUS_WRITES: Final = counter(
    "placewright_status_writes_total",
    "Conditions of pods: 'written', 'unchanged', 'overtaken' by a newer one, 'vanished' with the pod, 'dropped' for newer ones, 'failed'.",
    "outcome",
)
GROUP_STATUS_WRITES: Final = counter(
    "placewright_group_status_writes_total",
    "Conditions of groups of pods, by the same outcomes; 'dropped' includes those of a replica that no longer leads.",
    "outcome",
)
WRITER_RESTARTS: Final = counter(
    "placewright_writer_restarts_total",
    "Times that the writer of 'events', 'status' or 'group status' began anew after an error of its own.",
    "writer",
)
REPAIRS: Final = counter(
    "placewright_reconciler_repairs_total",
    "Beliefs about the cluster that were wrong and were corrected; docs/reconciler.md has the kinds.",
    "kind",
)
FORGOTTEN: Final = counter(
    "placewright_forgotten_pods_total",
    "Pods that waited although they would have fitted, by the plugin whose hint slept; they were put back. It must stay 0.",
    "plugin",
)
REDECIDED: Final = counter(
    "placewright_waiting_pods_decided_afresh_total", "Waiting pods that were evaluated again to find forgotten ones."
)
WATCHES: Final = counter("placewright_watch_starts_total", "Watches that were begun; each ends by itself after minutes.", "resource")
LISTS: Final = counter(
    "placewright_watch_lists_total",
    "Complete lists; more than one if the server forgot, or sent an object that cannot be read.",
    "resource",
)
WATCH_EVENTS: Final = counter("placewright_watch_events_total", "Events that watches brought.", "resource")
WATCH_PROBLEMS: Final = counter(
    "placewright_watch_problems_total",
    "Failures of a watch: 'failed', 'expired' (410), 'malformed', 'bad_object', 'sink_error'.",
    "resource", "problem",
)  # fmt: skip
AWAY: Final = gauge("placewright_api_server_away", "1 while the API server gives no answer, or only those of a failing one.")
AWAY_SECONDS: Final = gauge("placewright_api_server_away_seconds", "Seconds for which the API server has been away; 0 while it answers.")
EXTENDER_DURATION: Final = histogram(
    "placewright_extender_duration_seconds",
    "Seconds that all extenders of a profile took together for one pod; `profile` is the schedulerName.",
    exponential(0.001, 2, 15), "verb", "status", "profile",
)  # fmt: skip
