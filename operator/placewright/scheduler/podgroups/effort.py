"""The budget of a group's decision: how many times members may be tried on nodes, in all topology domains together.

Tries are counted, and not time, so that a decision is the same on any machine. A group may cost a fixed number of tries for each
member, however many domains its label has. The next attempt goes on with the domains that were not tried.
"""

from __future__ import annotations

from typing import Final

#: Tries for each member of a group: five domains, each in three orders for members of different sizes, and one more.
TRIES_A_MEMBER: Final = 16
#: Least number of tries, for small groups: a data centre's room may have as many racks.
LEAST_TRIES: Final = 256


class TrialBudget:
    """Tries that are left to a group in one attempt.

    Example:
        budget = TrialBudget(members=8)
        while budget.spend():   # 256 times
            ...                 # try one member on the nodes of one domain

    Args:
        members: number of members.

    Attributes:
        left: number of tries that are left.
    """

    __slots__ = ("left",)

    def __init__(self, members: int) -> None:
        self.left = max(TRIES_A_MEMBER * members, LEAST_TRIES)

    def spend(self, tries: int = 1) -> bool:
        """Take tries off; return False, and leave none, if there are not as many."""
        enough = tries <= self.left
        self.left = self.left - tries if enough else 0
        return enough
