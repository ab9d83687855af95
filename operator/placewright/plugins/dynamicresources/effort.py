"""The budget of the search for one pod's devices, on all nodes together: counted work, so that a decision ends alike on any machine.

Everything that grows with what a claim, a class or a driver says draws on one `StepBudget`: expressions on devices, devices that are looked
at, tried and counted, attributes that constraints compare. A step is about a tenth of a microsecond. A search that runs out of steps says
so, and what has been found stays: the next attempt goes on from there.
"""

from __future__ import annotations

from typing import Final

#: About two seconds on any number of nodes: the lead must be renewed meanwhile. Most selectors need as much for a hundred thousand
#: devices that all differ.
MOST_STEPS_IN_ALL: Final = 20_000_000
#: About 0.4 seconds for a pod on the smallest cluster, and for each node as much as a thousand devices that are looked at once take.
LEAST_STEPS_IN_ALL: Final = 4_000_000
STEPS_A_NODE: Final = 4_000

#: To compile a selector, and for each of its characters; to read a request, or one of its alternatives.
COMPILE: Final = 5_000
COMPILE_A_CHARACTER: Final = 25
READ: Final = 100
#: To look whether a demand could have a device, for each of its selectors (the answer is known), and for each pair of taint and toleration.
LOOK: Final = 10
ASK: Final = 2
TOLERATE: Final = 3
#: For a device that is not given as a whole, and for each of its capacities.
AMOUNT: Final = 8
#: To count a device as free.
COUNT: Final = 4
#: For each alternative of a request to which a search comes: a request without a choice has one.
BRANCH: Final = 8
#: To try a device for a request, and for each constraint of the claim.
TRY: Final = 20
CONSTRAIN: Final = 5
#: To read an attribute of a device in a proof, and to visit a device there.
COMPARE: Final = 5
VISIT: Final = 3
#: For each device or counter of a pool where all of them are looked at.
DRAW: Final = 2
#: To draw on the counters of a pool at all, and to give that back.
DRAW_AT_ALL: Final = 8


class OutOfSteps(Exception):
    """The search for devices took too much on all nodes together."""

    def __init__(self, steps: int) -> None:
        super().__init__(f"the search for devices takes more than {steps} steps on all nodes together; the rest is for the next attempt")


class StepBudget:
    """Steps that may still be taken before `renew` is called.

    Attributes:
        turn: how often it was renewed: who ran out of steps need not try again in the same turn.
    """

    __slots__ = ("_left", "_limit", "turn")

    def __init__(self) -> None:
        self._left = self._limit = MOST_STEPS_IN_ALL
        self.turn = 0

    def renew(self, nodes: int) -> None:
        """Begin to count anew, for a decision on so many nodes."""
        self._left = self._limit = min(MOST_STEPS_IN_ALL, LEAST_STEPS_IN_ALL + STEPS_A_NODE * nodes)
        self.turn += 1

    def spend(self, steps: int) -> None:
        """Raises `OutOfSteps` when there are not as many; then there are none for the rest of the turn either."""
        if steps > self._left:
            self._left = 0
            raise OutOfSteps(self._limit)
        self._left -= steps
