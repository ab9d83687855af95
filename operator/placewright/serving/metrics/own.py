"""Our own metrics: what kube-scheduler has no word for. Their label `profile` is the SchedulingProfile's name, if not said otherwise."""

from __future__ import annotations

from typing import Final

from placewright.serving.metrics.family import counter, exponential, gauge, histogram, info

# --- profiles ------------------------------------------------------------------------------------------------------------------

PROFILE_RELOADS: Final = counter(
    "placewright_profile_reloads_total",
    "Generations of a profile that were judged: 'success', or 'refused', which leaves the last good one in effect.",
    "profile", "result",
)  # fmt: skip
PROFILE_ACTIVE: Final = gauge(
    "placewright_profile_active_generation",
    "The generation of a profile that decides; 0 where none does.",
    "profile", "scheduler_name",
)  # fmt: skip
PROFILE_WANTED: Final = gauge(
    "placewright_profile_wanted_generation",
    "The generation of a profile that was seen last: more than the active one for longer than a moment means that it is refused.",
    "profile", "scheduler_name",
)  # fmt: skip
PROFILE_READY: Final = gauge(
    "placewright_profile_ready",
    "1 where the newest generation of a profile is in effect (its Ready condition is True); the reason is the condition's.",
    "profile", "scheduler_name", "reason",
)  # fmt: skip
SCORE_SHARE: Final = gauge(
    "placewright_plugin_score_share",
    "A plugin's part in the scores of the nodes that were chosen, 0 to 1, since the active generation came into effect.",
    "profile", "plugin",
)  # fmt: skip

# --- the replica ---------------------------------------------------------------------------------------------------------------

LEADER: Final = gauge("placewright_leader", "1 where this replica decides and binds, 0 where it stands by.", "identity")
BUILD: Final = info("placewright_build_info", "The version that runs.", "version", "python_version")

# --- what is written and read ----------------------------------------------------------------------------------------------------

BINDINGS: Final = counter(
    "placewright_bindings_total",
    "What became of Bindings: 'bound', 'conflict' (another was faster), 'refused', and on the way there 'retry' and 'lost_answer'.",
    "outcome",
)
BINDINGS_UNRESOLVED: Final = gauge(
    "placewright_bindings_unresolved", "Bindings of which nobody knows whether they exist; their pods keep their place meanwhile."
)
EVENTS: Final = counter(
    "placewright_events_total",
    "Events about pods: 'recorded', then 'written', or joined to one before as 'repeated', or 'dropped' under overload, or 'failed'.",
    "outcome",
)
STATUS_WRITES: Final = counter(
    "placewright_status_writes_total",
    "Conditions of pods: 'written', 'unchanged', 'overtaken' by a newer one, 'vanished' with the pod, or 'failed'.",
    "outcome",
)
REPAIRS: Final = counter(
    "placewright_reconciler_repairs_total", "What was believed of the cluster, turned out wrong, and was put right.", "kind"
)
WATCHES: Final = counter("placewright_watch_starts_total", "Watches that were begun; each ends by itself after minutes.", "resource")
LISTS: Final = counter(
    "placewright_watch_lists_total", "Complete lists; more than one where the server forgot, or sent what nobody can read.", "resource"
)
WATCH_EVENTS: Final = counter("placewright_watch_events_total", "Events that watches brought.", "resource")
WATCH_PROBLEMS: Final = counter(
    "placewright_watch_problems_total",
    "What went wrong with a watch: 'failed', 'expired' (410), 'malformed', 'bad_object', 'sink_error'.",
    "resource", "problem",
)  # fmt: skip
AWAY: Final = gauge("placewright_api_server_away", "1 while the API server gives no answer, or only those of a failing one.")
AWAY_SECONDS: Final = gauge("placewright_api_server_away_seconds", "For how long it has been away; 0 while it answers.")
EXTENDER_DURATION: Final = histogram(
    "placewright_extender_duration_seconds",
    "How long all extenders of a profile took together in seconds, for one pod; `profile` is the schedulerName.",
    exponential(0.001, 2, 15), "verb", "status", "profile",
)  # fmt: skip
