"""How long the pods of each tenant waited for their turn. Few tenants are counted by name, because a user may make any number of them.

A tenant keeps its name in metrics while pods of it are handed out. When all names are taken, a newcomer gets the name of a tenant that had
no pod among the last `PASSED_OVER`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

#: Tenants of one profile that are counted by name; all others are counted together.
MOST_NAMED: Final = 50
#: After so many hand-outs of other tenants a name may go to another tenant.
PASSED_OVER: Final = 100_000
#: The name of all other tenants, and of pods that no tenant claims. No namespace and no value of a label has parentheses.
OTHERS: Final = "(other)"
UNNAMED: Final = "(none)"


class TenantWait:
    """The waits of one tenant's pods.

    Attributes:
        pods: how many were handed out.
        seconds: their waits, summed up.
        last: the hand-out, counted over all tenants, that was this tenant's last.
    """

    __slots__ = ("last", "pods", "seconds")

    def __init__(self) -> None:
        self.pods = 0
        self.seconds = 0.0
        self.last = 0


class TenantWaits:
    """Waits by tenant, `MOST_NAMED` of them by name."""

    __slots__ = ("_handed_out", "_named", "_others")

    def __init__(self) -> None:
        self._named: OrderedDict[str, TenantWait] = OrderedDict()
        self._others = TenantWait()
        self._handed_out = 0

    def note(self, tenant: str, seconds: float) -> None:
        """Count a pod that was handed out.

        Args:
            tenant: the pod's.
            seconds: that the pod waited among the active pods.
        """
        self._handed_out += 1
        wait = self._named.get(tenant)
        if wait is None:
            wait = self._counted_for(tenant)
        wait.pods += 1
        wait.seconds += seconds
        wait.last = self._handed_out

    def _counted_for(self, tenant: str) -> TenantWait:
        if len(self._named) >= MOST_NAMED and not self._give_up_a_name():
            return self._others
        wait = self._named[tenant] = TenantWait()
        return wait

    def _give_up_a_name(self) -> bool:
        """Drop the tenant whose name has been taken for longest, if it had no pod for long."""
        name, wait = next(iter(self._named.items()))
        if wait.last > self._handed_out - PASSED_OVER:
            self._named.move_to_end(name)  # the next newcomer asks another
            return False
        del self._named[name]
        return True

    def __iter__(self) -> Iterator[tuple[str, TenantWait]]:
        """Iterate over the tenants that have a name, and the others together if there are any."""
        yield from ((name or UNNAMED, wait) for name, wait in self._named.items())
        if self._others.pods:
            yield OTHERS, self._others
