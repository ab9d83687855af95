"""A sandbox in place of a control plane, and what schedulers of the tests of `bench` hear of pods."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field
from pathlib import Path

from placewright.api.objects import Pod


@dataclass
class SandboxPlane:
    """A sandbox that looks like a control plane in this process."""

    kubeconfig: Path
    api_server_pid: int = field(default_factory=os.getpid)
    etcd_pid: int = field(default_factory=os.getpid)


class Incoming:
    """Puts new pods into a queue."""

    def __init__(self, queue: asyncio.Queue[Pod]) -> None:
        self.queue = queue

    def changed(self, old: Pod | None, new: Pod) -> None:
        if old is None:
            self.queue.put_nowait(new)

    def deleted(self, old: Pod) -> None: ...

    def synced(self) -> None: ...
