"""What all comparisons with kube-scheduler 1.20 share: the seeds, the programs, waiting for it, and how differences are told."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Final

from e2e.answers.scorelog import known_in
from placewright_lab.controlplane.assets import VARIABLE, from_environment
from placewright_lab.controlplane.kubescheduler import KubeScheduler
from placewright_lab.controlplane.server import ControlPlane, Options
from programs import not_on_this_server

SEED: Final = 20
#: The minor version whose rules are described here. 1.23 and later log other lines.
VERSION: Final = 20
_SHOWN: Final = 20
_START_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.02
_LAST_WORDS: Final = 1000


def seeds() -> list[int]:
    """The fixed one, and another that SAME_ANSWERS_SEED may name."""
    more = os.environ.get("SAME_ANSWERS_SEED")
    return [SEED, *([int(more)] if more else [])]


@contextmanager
def control_plane_of_1_20() -> Iterator[ControlPlane]:
    """A control plane with its own kube-scheduler; skips the test where there is none of that version."""
    assets = from_environment(os.environ)
    if assets is None or assets.kube_scheduler is None:
        not_on_this_server(f"{VARIABLE} has no kube-scheduler")
    if assets.minor != VERSION:
        not_on_this_server(f"the named changes are those since 1.{VERSION}, and this kube-scheduler is 1.{assets.minor}")
    with ControlPlane(assets, Options(audit=False)) as plane:
        yield plane


async def heard_of(names: Collection[str], scheduler: KubeScheduler) -> None:
    """Waits until kube-scheduler has started and knows of these nodes and pods; volumes and claims it has read before."""
    async with asyncio.timeout(_START_SECONDS):
        while not set(names).issubset(known_in(scheduler.log)):
            assert not scheduler.ended, f"kube-scheduler ended: {scheduler.log.read_text()[-_LAST_WORDS:]}"
            await asyncio.sleep(_LOOK_SECONDS)


def listed(problems: list[str]) -> str:
    """How many there are, and the first of them."""
    return "\n".join([f"{len(problems)} differences:", *problems[:_SHOWN]])
