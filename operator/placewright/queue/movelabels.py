"""The labels of moves between sub-queues that no event in the cluster causes.

The metric `scheduler_queue_incoming_pods_total` counts pods by sub-queue and label. Moves by an event have the event's label
(`framework.events`). The first four labels here are kube-scheduler's, word for word, so that dashboards made for it go on
working; the others name moves that kube-scheduler does not have.
"""

from __future__ import annotations

from typing import Final

# --- kube-scheduler's --------------------------------------------------------------------------------------------------------

#: The watch of unscheduled pods shows a pod for the first time. `scheduler_event_handling_duration_seconds` has the time that this
#: takes under the same label.
POD_ADD: Final = "UnscheduledPodAdd"

#: An attempt ended without a node.
ATTEMPT_FAILURE: Final = "ScheduleAttemptFailure"

#: A pod's backoff is over.
BACKOFF_COMPLETE: Final = "BackoffComplete"

#: A pod is handed out before its backoff is over, because no pod is active. kube-scheduler does so since 1.33, behind the feature
#: gate `SchedulerPopFromBackoffQ`.
POP_FROM_BACKOFF: Final = "PopFromBackoffQ"

# --- ours --------------------------------------------------------------------------------------------------------------------

#: A profile changed: its gated pods, and pods whose rejection may not hold any longer, are tried again.
PROFILE_UPDATE: Final = "ProfileUpdate"

#: A group lost a member, or its barrier expired: one of its members is tried again and takes the others along.
GANG_AGAIN: Final = "GangAgain"

#: A pod resembles one in whose decision a process ended (`queue.suspects`), and is set apart.
SET_APART: Final = "SuspectSetApart"

#: A suspect is made active, because no other pod is.
LET_IN: Final = "SuspectLetIn"

#: A pod whose rejection ends by time alone is tried again at that time (`queue.wakeups`).
TIME_HAS_COME: Final = "TimeHasCome"
