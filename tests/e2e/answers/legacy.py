"""The plugins that kube-scheduler shipped up to 1.22: the profile that switches them on in both, and what makes them matter.

Their rules did not change, so 1.20's answers and ours have to be equal.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from e2e.answers.comparing import Object
from e2e.answers.randomcluster import ZONE, Dice
from placewright.api.avoidedpods import ANNOTATION

HALL: Final = "example.com/hall"
FLOOR: Final = "example.com/floor"
RETIRING: Final = "example.com/retiring"
OLD_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"

AVOID_WEIGHT: Final = 10_000
#: Those that reject nodes, too.
REJECTING: Final = ("NodeLabel", "ServiceAffinity")
_SCORING: Final = ("SelectorSpread", "NodeLabel", "ServiceAffinity")

#: What KubeSchedulerConfiguration v1beta1 and a SchedulingProfile both read.
PROFILE: Final[Object] = {
    "plugins": {
        "preFilter": {"enabled": [{"name": "ServiceAffinity"}]},
        "filter": {"enabled": [{"name": name} for name in REJECTING]},
        "preScore": {"enabled": [{"name": "SelectorSpread"}]},
        "score": {"enabled": [{"name": name, "weight": 1} for name in _SCORING]},
    },
    "pluginConfig": [
        {
            "name": "NodeLabel",
            "args": {
                "presentLabels": ["disk"],
                "absentLabels": [RETIRING],
                "presentLabelsPreference": [ZONE, FLOOR],
                "absentLabelsPreference": [REGION],
            },
        },
        {"name": "ServiceAffinity", "args": {"affinityLabels": [HALL], "antiAffinityLabelsPreference": [FLOOR, ZONE]}},
    ],
}
#: Ours does not have this one by default.
AVOIDING: Final[Object] = {"name": "NodePreferAvoidPods", "weight": AVOID_WEIGHT}


def our_profile() -> Object:
    """The same profile, with what 1.20 has by default and we have not."""
    score = [*PROFILE["plugins"]["score"]["enabled"], AVOIDING]
    return PROFILE | {"plugins": PROFILE["plugins"] | {"score": {"enabled": score}}}


def marks(dice: Dice, replica_sets: Sequence[Object]) -> Object:
    """Labels and annotations of a node that only these plugins look at."""
    labels = {HALL: dice.choice(("north", "north", "north", "south"))} if dice.maybe(0.9) else {}
    if dice.maybe(0.8):
        labels[FLOOR] = dice.choice(("1", "2", "3"))
    if dice.maybe(0.05):
        labels[RETIRING] = "soon"
    if dice.maybe(0.3):
        labels[OLD_ZONE] = dice.choice(("z1", "z2", "old"))
    if dice.maybe(0.5):
        labels[REGION] = dice.choice(("here", "there"))
    avoided = [each for each in replica_sets if dice.maybe(0.4)]
    return {"labels": labels, "annotations": {ANNOTATION: _annotation(avoided)} if avoided else {}}


def _annotation(avoided: Sequence[Object]) -> str:
    """Names them, with all that the API server insists on."""
    owners = [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "set", "uid": each["metadata"]["uid"], "controller": True}
        for each in avoided
    ]
    entries = [{"podSignature": {"podController": owner}, "evictionTime": "2020-01-02T03:04:05Z"} for owner in owners]
    return json.dumps({"preferAvoidPods": entries})
