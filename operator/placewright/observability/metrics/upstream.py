"""kube-scheduler's metrics, as far as they are true of us: names, labels and buckets of v1.36, so that its dashboards and alerts work.

The label `profile` is the schedulerName, as there. What is missing and what differs in meaning is told in docs/metrics.md.
"""

from __future__ import annotations

from typing import Final

from placewright.observability.metrics.family import counter, exponential, gauge, histogram

_ATTEMPT: Final = exponential(0.001, 2, 15)
_STEP: Final = exponential(0.0001, 2, 12)
_PLUGIN: Final = exponential(0.00001, 1.5, 20)
#: client-go's, since 1.24.
_REQUEST: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)

# --- attempts ------------------------------------------------------------------------------------------------------------------

SCHEDULE_ATTEMPTS: Final = counter(
    "scheduler_schedule_attempts_total",
    "Attempts to place a pod, by outcome: 'unschedulable' if no node could hold the pod, 'error' if the attempt failed.",
    "result", "profile",
)  # fmt: skip
ATTEMPT_DURATION: Final = histogram(
    "scheduler_scheduling_attempt_duration_seconds",
    "Seconds from when the queue hands out a pod until it is bound or rejected.",
    _ATTEMPT, "result", "profile",
)  # fmt: skip
ALGORITHM_DURATION: Final = histogram(
    "scheduler_scheduling_algorithm_duration_seconds", "Seconds in which a node was chosen, if one was found.", _ATTEMPT
)
SLI_DURATION: Final = histogram(
    "scheduler_pod_scheduling_sli_duration_seconds",
    "Seconds from when a pod was first ready to be tried to its Binding, by the number of attempts that it took.",
    exponential(0.01, 2, 20), "attempts",
)  # fmt: skip
POD_ATTEMPTS: Final = histogram("scheduler_pod_scheduling_attempts", "Attempts that a pod took until it was bound.", exponential(1, 2, 5))
AFTER_FLUSH: Final = counter(
    "scheduler_pod_scheduled_after_flush_total",
    "Pods that were placed after only the long timeout, and no event, had brought them back: a hint of a missing queueing hint.",
)
EXTENSION_POINT_DURATION: Final = histogram(
    "scheduler_framework_extension_point_duration_seconds",
    "Seconds that all plugins of an extension point took together for one pod.",
    _STEP, "extension_point", "status", "profile",
)  # fmt: skip
PLUGIN_DURATION: Final = histogram(
    "scheduler_plugin_execution_duration_seconds",
    "Seconds that one call of a plugin took, measured in one attempt of ten.",
    _PLUGIN, "plugin", "extension_point", "status",
)  # fmt: skip
PLUGIN_EVALUATIONS: Final = counter(
    "scheduler_plugin_evaluation_total",
    "Attempts in which a plugin ran at PreFilter, Filter, PreScore or Score.",
    "plugin", "extension_point", "profile",
)  # fmt: skip
PERMIT_WAIT: Final = histogram(
    "scheduler_permit_wait_duration_seconds", "Seconds that a pod waited at Permit, by the verdict.", _ATTEMPT, "result"
)
PREEMPTION_ATTEMPTS: Final = counter("scheduler_preemption_attempts_total", "Attempts to make room for a pod by preemption.")
PREEMPTION_VICTIMS: Final = histogram("scheduler_preemption_victims", "Victims of one preemption.", exponential(1, 2, 7))

# --- groups and claims -----------------------------------------------------------------------------------------------------------

GROUP_ATTEMPTS: Final = counter(
    "scheduler_podgroup_schedule_attempts_total",
    "Attempts to place a group of pods, by outcome: 'waiting_on_preemption' if pods have to leave for it first.",
    "result", "profile",
)  # fmt: skip
GROUP_ATTEMPT_DURATION: Final = histogram(
    "scheduler_podgroup_scheduling_attempt_duration_seconds",
    "Seconds from when the queue hands out a group until its members go to binding or back to the queue.",
    _ATTEMPT, "result", "profile",
)  # fmt: skip
GROUP_ALGORITHM_DURATION: Final = histogram(
    "scheduler_podgroup_scheduling_algorithm_duration_seconds",
    "Seconds in which nodes were found for all members of a group, or too few nodes.",
    _ATTEMPT,
)  # fmt: skip
CLAIM_CREATES: Final = counter(
    "scheduler_resourceclaim_creates_total", "ResourceClaims made for the extended resources of pods: 'success' or 'failure'.", "status"
)
BINDING_CONDITIONS: Final = counter(
    "scheduler_dra_bindingconditions_allocations_total",
    "Pods that waited for devices with binding conditions, by their drivers: 'success', 'failure', 'timeout', or 'error'.",
    "profile", "driver", "status",
)  # fmt: skip
BINDING_CONDITIONS_WAIT: Final = histogram(
    "scheduler_dra_bindingconditions_wait_duration_seconds",
    "Seconds that pods waited for devices with binding conditions, by their drivers.",
    exponential(0.1, 2, 14), "profile", "driver", "status",
)  # fmt: skip

# --- queue and cache -------------------------------------------------------------------------------------------------------------

PENDING_PODS: Final = gauge(
    "scheduler_pending_pods",
    "Pods that wait: 'active' to be tried, 'backoff' until they may be, 'unschedulable' for an event, 'gated' to be let in.",
    "queue",
)
INCOMING_PODS: Final = counter(
    "scheduler_queue_incoming_pods_total", "Pods that came into a part of the queue, by the event that brought them.", "queue", "event"
)
UNSCHEDULABLE_PODS: Final = gauge(
    "scheduler_unschedulable_pods",
    "Pods that a plugin keeps waiting; one that several plugins keep is counted with each.",
    "plugin", "profile",
)  # fmt: skip
INFLIGHT_EVENTS: Final = gauge(
    "scheduler_inflight_events", "Events remembered for pods that are being tried, and those pods themselves as 'PodPopped'.", "event"
)
EVENT_DURATION: Final = histogram(
    "scheduler_event_handling_duration_seconds",
    "Seconds in which an event of a watch was handled, with the waiting pods that it brought back.",
    _STEP, "event",
)  # fmt: skip
HINT_DURATION: Final = histogram(
    "scheduler_queueing_hint_execution_duration_seconds",
    "Seconds in which a plugin said whether an event helps a pod, measured for one question of ten.",
    _PLUGIN, "plugin", "event", "hint",
)  # fmt: skip
CACHE_SIZE: Final = gauge("scheduler_cache_size", "Objects in the cache: nodes, pods on them, and pods assumed there.", "type")
GOROUTINES: Final = gauge("scheduler_goroutines", "Tasks that run at once; only bindings are counted.", "operation")

# --- the process -------------------------------------------------------------------------------------------------------------------

REQUESTS: Final = counter(
    "rest_client_requests_total",
    "Requests to the API server, by the code of the answer; '<error>' without an answer.",
    "code", "method", "host",
)  # fmt: skip
REQUEST_DURATION: Final = histogram(
    "rest_client_request_duration_seconds", "Seconds that a request took; watches are not counted.", _REQUEST, "verb", "host"
)
RATE_LIMITER_DURATION: Final = histogram(
    "rest_client_rate_limiter_duration_seconds",
    "Seconds that a request waited for its turn: for --kube-api-qps, and after the server asked it to wait.",
    _REQUEST, "verb", "host",
)  # fmt: skip
LEADER_ELECTION: Final = gauge("leader_election_master_status", "1 if this replica leads, 0 if it stands by.", "name")
