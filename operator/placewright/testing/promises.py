"""The promises of a plugin by its extension points, and the error that says which promise one breaks.

`check_plugin` knows these promises one by one. Each is a sentence of the plugin contract, the package `placewright/framework/interface`.
So an author who reads the error knows where to read on.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Promise(enum.StrEnum):
    """The promises that `check_plugin` looks at; the value is the sentence that an error quotes."""

    ANSWERS = "every extension point answers in the shape and with the statuses that it allows"
    RETURNS = "every call returns within the limit of the check"
    REPEATS = "asked again, at any time of day, a plugin answers the same"
    RANGE = "scores lie between 0 and 100 once they are normalised"
    ROWS = "the answer for a node is the same, whichever nodes are asked about with it"
    EXPLAIN = "explain names each row that filter rejected, once, and no other row"
    READS = "reads says all that a column depends on beside the pod, so that a kept column equals a fresh one"
    FINGERPRINT = "equal fingerprints mean equal columns"
    MEMORY = "a plugin that has seen the cluster change answers as one that was built just now"
    SIGN = "pods with equal signatures get equal columns"
    HINTS = "an event with its hint wakes a rejected pod when a change makes the plugin accept it"
    UNTOUCHED = "objects and columns are read, never written"
    UNRESERVE = "Unreserve gives back all that Reserve took, and does nothing where Reserve was never called"


@dataclass(frozen=True)
class Breach:
    """One broken promise.

    Attributes:
        promise: the promise.
        point: the extension point, in kube-scheduler's spelling: `Filter`, `Score`, `Sign`, `QueueingHint`.
        says: the finding, as one sentence in plain words.
    """

    promise: Promise
    point: str
    says: str


class BreachError(Exception):
    """Ends the run of one scenario at the first broken promise. `check_plugin` turns it into a `BrokenPromiseError`.

    Attributes:
        breach: the broken promise.
        told: number of the scenario's changes that were told by then.
    """

    def __init__(self, promise: Promise, point: str, says: str) -> None:
        super().__init__(says)
        self.told = 0
        self.breach = Breach(promise, point, says)


class BrokenPromiseError(AssertionError):
    """A plugin breaks a promise of the contract.

    Attributes:
        plugin: its name.
        promise: the broken promise.
        point: the extension point at which it shows.
        seed: `check_plugin` with this seed finds it again.
        example: the smallest example that was found: pods, nodes and their changes, one a line.
    """

    def __init__(self, plugin: str, breach: Breach, seed: int, example: str) -> None:
        self.plugin = plugin
        self.promise = breach.promise
        self.point = breach.point
        self.seed = seed
        self.example = example
        super().__init__(
            f"{plugin} breaks a promise at {breach.point}: {breach.promise.value}.\n"
            f"Found with seed {seed}: {breach.says}.\n"
            f"The smallest example found:\n{example}"
        )
