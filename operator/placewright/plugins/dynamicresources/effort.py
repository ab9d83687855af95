"""The budget of the search for one pod's devices on all nodes. It counts work, so that decisions end the same way on any machine.

All work that grows with the text of a claim, a class or a driver draws on one `StepBudget`. Such work is to evaluate expressions, to read,
try and count devices, and to compare attributes. A step takes about a tenth of a microsecond. A search that runs out of steps says so and
keeps its findings, and the next attempt continues from there.
"""

from __future__ import annotations

from typing import Final

#: About two seconds on any number of nodes, because the lead must be renewed meanwhile. Most selectors need as much for a hundred thousand
#: devices that all differ.
MOST_STEPS_IN_ALL: Final = 20_000_000
#: About 0.4 seconds for a pod on the smallest cluster. Each node adds the cost of reading a thousand devices once.
LEAST_STEPS_IN_ALL: Final = 4_000_000
STEPS_A_NODE: Final = 4_000

#: Compiling a selector, and each of its characters; reading a request, or one of its alternatives.
COMPILE: Final = 5_000
COMPILE_A_CHARACTER: Final = 25
READ: Final = 100
#: Checking whether a demand could have a device: a device, each selector (with a kept answer), each pair of taint and toleration.
LOOK: Final = 10
ASK: Final = 2
TOLERATE: Final = 3
#: A device that is not plain, or whose capacities are asked for, and each of its capacities.
AMOUNT: Final = 8
#: Counting a device as free.
COUNT: Final = 4
#: Each alternative of a request that a search reaches; a request without a choice has one.
BRANCH: Final = 8
#: Trying a device for a request, and each constraint of the claim.
TRY: Final = 20
CONSTRAIN: Final = 5
#: Reading an attribute of a device in a proof, and visiting a device there.
COMPARE: Final = 5
VISIT: Final = 3
#: Each device or counter of a pool when all of them are read.
DRAW: Final = 2
#: Drawing on the counters of a pool, and undoing that.
DRAW_AT_ALL: Final = 8


class OutOfSteps(Exception):
    """The search for devices took too many steps on all nodes together."""

    def __init__(self, steps: int) -> None:
        super().__init__(f"the search for devices takes more than {steps} steps on all nodes together; the rest is for the next attempt")


class StepBudget:
    """Steps that may still be taken before `renew` is called.

    Attributes:
        turn: number of renewals; a search that ran out of steps needs no second try in the same turn.
    """

    __slots__ = ("_left", "_limit", "turn")

    def __init__(self) -> None:
        self._left = self._limit = MOST_STEPS_IN_ALL
        self.turn = 0

    def renew(self, nodes: int) -> None:
        """Count anew, for a decision on this many nodes."""
        self._left = self._limit = min(MOST_STEPS_IN_ALL, LEAST_STEPS_IN_ALL + STEPS_A_NODE * nodes)
        self.turn += 1

    def spend(self, steps: int) -> None:
        """Take steps from the budget. Raise `OutOfSteps` if too few are left, and on every later call of this turn."""
        if steps > self._left:
            self._left = 0
            raise OutOfSteps(self._limit)
        self._left -= steps
