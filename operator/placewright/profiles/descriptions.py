"""What each field of a SchedulingProfile means and may hold, for the schema: `{struct: {field: facets}}`.

Facets are JSON Schema keywords. `description` is what `kubectl explain` prints.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from placewright.api.durations import PATTERN as DURATION_PATTERN
from placewright.api.profile import LIVE, SHADOW
from placewright.profiles.presets import PRESETS
from placewright.profiles.rules import (
    MAX_BACKOFF_SECONDS,
    MAX_ITEMS,
    MAX_NAME_LENGTH,
    MAX_PEM_LENGTH,
    MAX_PERCENTAGE,
    MAX_SHADOW_BUDGET,
    MAX_URL_LENGTH,
    MAX_WEIGHT,
    MIN_BACKOFF_SECONDS,
    MIN_SHADOW_BUDGET,
)

Facets = Mapping[str, Any]

#: A list that server-side apply merges by the name of its items, so that two owners can each own one.
_BY_NAME: Final = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "maxItems": MAX_ITEMS}
_NAME: Final = {"minLength": 1, "maxLength": MAX_NAME_LENGTH}
_PATH: Final = {"maxLength": 4096}
_PEM: Final = {"format": "byte", "maxLength": MAX_PEM_LENGTH}
_COUNT: Final = {"minimum": 0, "format": "int64"}


def _point(text: str) -> Facets:
    return {"description": f"{text} What is named here runs here, besides what multiPoint brings; see multiPoint."}


def _verb(text: str) -> Facets:
    return {"description": text, "maxLength": MAX_URL_LENGTH}


FIELDS: Final[Mapping[str, Mapping[str, Facets]]] = {
    "ProfileSpec": {
        "schedulerName": {
            "description": "The pods whose spec.schedulerName is this are placed by this profile. Required, but for a Shadow, "
            "which claims none. Immutable.",
            **_NAME,
        },
        "preset": {
            "description": "What the profile starts from; all else that it says goes over it. Absent: default, as kube-scheduler.",
            "enum": list(PRESETS),
        },
        "plugins": {"description": "Which plugins run at which extension point, as in a KubeSchedulerConfiguration."},
        "pluginConfig": {"description": "Arguments of plugins, as in a KubeSchedulerConfiguration.", **_BY_NAME},
        "percentageOfNodesToScore": {
            "description": "How many of the nodes to look at for a pod, in percent. 0 or absent: all.",
            "minimum": 0,
            "maximum": MAX_PERCENTAGE,
            "format": "int32",
        },
        "weights": {
            "description": "Score weight by plugin name; goes before the weights in plugins. "
            "0: the plugin does not score, but still filters.",
            "maxProperties": MAX_ITEMS,
            "additionalProperties": {"type": "integer", "format": "int32", "minimum": 0, "maximum": MAX_WEIGHT},
        },
        "backoff": {"description": "How long a rejected pod waits before it is tried again.", "default": {}},
        "extenders": {
            "description": "HTTP extenders, as in a KubeSchedulerConfiguration; those that are ignorable are called last.",
            "maxItems": MAX_ITEMS,
            "x-kubernetes-list-type": "atomic",
        },
        "paused": {"description": "Take no new pods; those in flight are finished."},
        "mode": {
            "description": "Live: the profile places the pods of its schedulerName. Shadow: it decides the pods of another profile beside "
            "that one, binds nothing, asks no extender, and claims no schedulerName; its status compares.",
            "enum": [LIVE, SHADOW],
        },
        "shadows": {
            "description": "Of a Shadow alone: the name of the live SchedulingProfile whose pods it decides, too.",
            "maxLength": MAX_NAME_LENGTH,
        },
        "shadow": {"description": "Of a Shadow alone: what it may cost."},
    },
    "ShadowSettings": {
        "budgetPercent": {
            "description": "At most so many percent of the time are spent for it; pods that there is no time for are passed over.",
            "minimum": MIN_SHADOW_BUDGET,
            "maximum": MAX_SHADOW_BUDGET,
        },
    },
    "Plugins": {
        "multiPoint": {
            "description": "Plugins for every extension point that they implement. The default plugins are here before anything is "
            "said: naming one again changes its weight, disabling one drops it, disabling '*' drops all.",
        },
        "preEnqueue": _point("Keeps pods out of the active queue until they may be tried."),
        "queueSort": _point("Orders the queue; exactly one plugin, the same in all profiles."),
        "preFilter": _point("Looks at a pod before any node."),
        "filter": _point("Says which nodes can hold a pod."),
        "postFilter": _point("Tries to make room when no node fits."),
        "preScore": _point("Looks at the feasible nodes before scoring."),
        "score": _point("Ranks the feasible nodes."),
        "reserve": _point("Keeps what a pod needs while it is being bound."),
        "permit": _point("Allows, refuses or delays binding."),
        "preBind": _point("Does what must be done before binding."),
        "bind": _point("Writes the binding; at least one plugin."),
        "postBind": _point("Hears that a pod was bound."),
    },
    "PluginSet": {
        "enabled": {"description": "Plugins to run, in order.", **_BY_NAME},
        "disabled": {"description": "Plugins that multiPoint or the defaults would bring and that shall not run; '*' for all.", **_BY_NAME},
    },
    "PluginRef": {
        "name": {"description": "The plugin's name.", **_NAME},
        "weight": {
            "description": "Factor of its score; 0 or absent: 1 for kube-scheduler's plugins, else what the plugin says.",
            "minimum": 0,
            "maximum": MAX_WEIGHT,
            "format": "int32",
        },
    },
    "PluginConfig": {
        "name": {"description": "The plugin's name.", **_NAME},
        "args": {"description": "Its arguments; their fields are checked by the operator."},
    },
    "Backoff": {
        "initialSeconds": {
            "description": "Seconds after the first rejection; doubles with every further one.",
            "minimum": MIN_BACKOFF_SECONDS,
            "maximum": MAX_BACKOFF_SECONDS,
        },
        "maxSeconds": {
            "description": "Seconds at which the doubling ends, at least initialSeconds; 0: no backoff.",
            "minimum": 0,
            "maximum": MAX_BACKOFF_SECONDS,
        },
    },
    "ExtenderSpec": {
        "urlPrefix": {
            "description": "Where it is; a slash and the verb are put after it.",
            "pattern": "^https?://",
            "maxLength": MAX_URL_LENGTH,
        },
        "filterVerb": _verb("Takes nodes out. Empty: it does not filter."),
        "preemptVerb": _verb("Agrees to preemption, or chooses other victims. Empty: it is not asked."),
        "prioritizeVerb": _verb("Scores nodes from 0 to 10. Empty: it does not score."),
        "weight": {
            "description": "Factor of its scores, which count ten times as much before; needed with prioritizeVerb.",
            "minimum": 0,
            "maximum": MAX_WEIGHT,
            "format": "int64",
        },
        "bindVerb": _verb("Binds pods in the scheduler's stead; only one extender may. Empty: it does not bind."),
        "enableHTTPS": {
            "description": "Without a CA in tlsConfig, the certificate of an https URL is then not verified, as in kube-scheduler."
        },
        "tlsConfig": {"description": "How it is spoken to over HTTPS."},
        "httpTimeout": {
            "description": "How long a whole call may take, such as 500ms; absent: 5s.",
            "pattern": DURATION_PATTERN,
            "maxLength": 64,
        },
        "nodeCacheCapable": {"description": "It knows the nodes: names of nodes and uids of victims are sent, not whole objects."},
        "managedResources": {
            "description": "It is asked only about pods that ask for one of these extended resources; empty: about all pods.",
            "maxItems": MAX_ITEMS,
            "x-kubernetes-list-type": "atomic",
        },
        "ignorable": {"description": "When it fails, pods are placed without it."},
    },
    "ManagedResource": {
        "name": {"description": "The extended resource, such as example.com/gpu.", "minLength": 1, "maxLength": 317},
        "ignoredByScheduler": {"description": "NodeResourcesFit of this profile does not count it; goes before its ignoredResources."},
    },
    "ExtenderTLS": {
        "insecure": {"description": "Do not verify the server's certificate."},
        "serverName": {"description": "The name expected in the server's certificate; empty: the host of urlPrefix.", **_PATH},
        "certFile": {"description": "PEM file, where the scheduler runs, of our certificate.", **_PATH},
        "keyFile": {"description": "PEM file, where the scheduler runs, of our certificate's key.", **_PATH},
        "caFile": {"description": "PEM file, where the scheduler runs, of the CAs that the server is verified with.", **_PATH},
        "certData": {"description": "Our certificate, PEM in base64; goes before certFile.", **_PEM},
        "keyData": {"description": "Its key, PEM in base64; goes before keyFile. Whoever reads the profile reads it.", **_PEM},
        "caData": {"description": "The CAs, PEM in base64; goes before caFile.", **_PEM},
    },
    "ProfileStatus": {
        "observedGeneration": {"description": "The generation that was looked at last.", **_COUNT},
        "activeGeneration": {"description": "The generation that decisions use; 0: none.", **_COUNT},
        "conditions": {
            "description": "Ready always; Reconciling, Stalled, Advice, PluginHanging while they are true; PluginFailing once one failed.",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        },
        "pending": {"description": "The profile's pods in the queue."},
        "shadow": {"description": "Of a Shadow alone: how it compares with the live profile."},
    },
    "ShadowStatus": {
        "since": {"description": "The figures are since then: since the shadow's or the live profile's generation took effect."},
        "liveGeneration": {"description": "The generation of the live profile that it is compared with.", **_COUNT},
        "pods": {"description": "Decisions of the live profile that there were to compare with.", **_COUNT},
        "decided": {"description": "Those of them that the shadow has made, too.", **_COUNT},
        "sampledPercent": {"description": "Their share, in percent, of those that are not still before it."},
        "agreementPercent": {"description": "Of the pods that either of both found a node for, the share that both put on the same one."},
        "same": {"description": "Both chose the same node.", **_COUNT},
        "other": {"description": "They chose different nodes.", **_COUNT},
        "liveOnly": {"description": "The live profile found a node, the shadow none.", **_COUNT},
        "shadowOnly": {"description": "The shadow found a node, the live profile none.", **_COUNT},
        "neither": {"description": "Neither found one.", **_COUNT},
        "notFeasible": {"description": "The live profile's node could not have held the pod where the shadow placed all before.", **_COUNT},
        "regret": {"description": "How much worse the live profile's nodes are than the shadow's, by the shadow's totals."},
        "liveRegret": {
            "description": "How much worse the shadow's nodes are than the live profile's, by the live totals, where the shadow's was "
            "among the few best nodes that a live decision tells now and then."
        },
        "emptyNodes": {"description": "Nodes without a pod other than those of DaemonSets."},
        "resources": {
            "description": "What of each resource would be requested, and what is.",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
        "pending": {"description": "Pods that stand on a node, and for which the shadow has none now.", **_COUNT},
        "backlog": {"description": "News and decisions that are still before it.", **_COUNT},
        "restarts": {"description": "How often it fell too far behind, and began anew from the cluster as it was.", **_COUNT},
        "timePercent": {"description": "The share of the time that it took, in percent."},
        "errors": {"description": "What broke in it; nothing else comes of that.", **_COUNT},
        "lastError": {"description": "The last of them."},
    },
    "Regret": {
        "decisions": {"description": "Of how many decisions it is told.", **_COUNT},
        "meanPoints": {"description": "The mean, in points of the total."},
        "maxPoints": {"description": "The most."},
        "meanPercent": {"description": "The mean, in percent of the best node's total."},
    },
    "ShadowUse": {
        "name": {"description": "Of the resource."},
        "shadow": {"description": "With pods where the shadow put them."},
        "live": {"description": "With pods where they are."},
    },
    "Allocation": {
        "meanPercent": {"description": "Mean over the nodes that offer it."},
        "deviationPercent": {"description": "Standard deviation over these nodes."},
    },
    "EmptyNodes": {
        "shadow": {"description": "With pods where the shadow put them.", **_COUNT},
        "live": {"description": "With pods where they are.", **_COUNT},
    },
    "QueueSizes": {
        "total": {"description": "All of them.", **_COUNT},
        "active": {"description": "Ready to be tried.", **_COUNT},
        "backoff": {"description": "Waiting for their backoff to end.", **_COUNT},
        "unschedulable": {"description": "Rejected, waiting for something to change.", **_COUNT},
        "gated": {"description": "Not to be tried yet.", **_COUNT},
    },
    "Condition": {
        "type": {"description": "What the condition is about.", "minLength": 1, "maxLength": 316},
        "status": {"description": "Whether it holds.", "enum": ["True", "False", "Unknown"]},
        "reason": {"description": "One word for programs.", "maxLength": 1024},
        "message": {"description": "A sentence for people.", "maxLength": 32768},
        "lastTransitionTime": {"description": "When the status last changed.", "format": "date-time"},
        "observedGeneration": {"description": "The generation that this is about.", **_COUNT},
    },
}

#: Fields that must be there although our decoder can do without: list keys, and what makes a condition one.
REQUIRED: Final[Mapping[str, tuple[str, ...]]] = {
    "PluginRef": ("name",),
    "PluginConfig": ("name",),
    "ExtenderSpec": ("urlPrefix",),
    "ManagedResource": ("name",),
    "ShadowUse": ("name",),
    "Condition": ("type", "status", "lastTransitionTime", "reason", "message"),
}
