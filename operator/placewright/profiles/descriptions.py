"""What each field of a SchedulingProfile means and may hold, for the schema: `{struct: {field: facets}}`.

Facets are JSON Schema keywords. `description` is what `kubectl explain` prints.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from placewright.profiles.bounds import (
    MAX_BACKOFF_SECONDS,
    MAX_ITEMS,
    MAX_NAME_LENGTH,
    MAX_PERCENTAGE,
    MAX_WEIGHT,
    MIN_BACKOFF_SECONDS,
)

Facets = Mapping[str, Any]

#: A list that server-side apply merges by the name of its items, so that two owners can each own one.
_BY_NAME: Final = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "maxItems": MAX_ITEMS}
_NAME: Final = {"minLength": 1, "maxLength": MAX_NAME_LENGTH}
_COUNT: Final = {"minimum": 0, "format": "int64"}


def _point(text: str) -> Facets:
    return {"description": f"{text} What is named here runs here, besides what multiPoint brings; see multiPoint."}


FIELDS: Final[Mapping[str, Mapping[str, Facets]]] = {
    "ProfileSpec": {
        "schedulerName": {"description": "The pods whose spec.schedulerName is this are placed by this profile.", **_NAME},
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
            "description": "HTTP extenders, as in a KubeSchedulerConfiguration.",
            "maxItems": MAX_ITEMS,
            "x-kubernetes-list-type": "atomic",
        },
        "paused": {"description": "Take no new pods; those in flight are finished."},
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
    "ProfileStatus": {
        "observedGeneration": {"description": "The generation that was looked at last.", **_COUNT},
        "activeGeneration": {"description": "The generation that decisions use; 0: none.", **_COUNT},
        "conditions": {
            "description": "Ready always; Reconciling and Stalled only while they are true.",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        },
        "pending": {"description": "The profile's pods in the queue."},
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
    "Condition": ("type", "status", "lastTransitionTime", "reason", "message"),
}
