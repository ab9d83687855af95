"""A fence that holds, for tests of peering alone."""

from __future__ import annotations

from typing import Any, cast

from placewright.kube.tasks import Tasks
from placewright.leadership.lease import LeaseFence


class NoFence:
    """Takes the calls of a leadership, and does nothing."""

    held, until, term, why, work = True, None, 0, "there is no fence", Tasks({})

    def ignore(self, *_: object) -> None:
        pass

    on_change = elected = ignore

    async def stop(self, **_: Any) -> None:
        pass


def no_fence() -> LeaseFence:
    return cast(LeaseFence, NoFence())
