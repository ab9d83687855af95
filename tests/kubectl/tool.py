"""A kubectl that is really run, against a sandbox in a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

DEADLINE = 30.0
"""Seconds for any one command."""


@dataclass(frozen=True)
class Ran:
    """What a command left: exit code and both of its outputs."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Kubectl:
    """One binary, one cluster, one namespace. Its caches go to `home`, so that no run sees another's."""

    binary: str
    kubeconfig: Path
    home: Path
    namespace: str = "default"

    def within(self, namespace: str) -> Kubectl:
        """The same tool in another namespace."""
        return replace(self, namespace=namespace)

    async def __call__(self, *arguments: str, given: object = None, **environment: str) -> str:
        """Standard output of a command that succeeds; `given` goes to its standard input, as YAML unless text."""
        ran = await self.run(*arguments, given=given, **environment)
        assert ran.code == 0, f"kubectl {' '.join(arguments)}: {ran.err or ran.out}"
        return ran.out

    async def fails(self, *arguments: str, given: object = None) -> str:
        """Standard error of a command that must not succeed."""
        ran = await self.run(*arguments, given=given)
        assert ran.code != 0, f"kubectl {' '.join(arguments)} should have failed: {ran.out}"
        return ran.err

    async def run(self, *arguments: str, given: object = None, **environment: str) -> Ran:
        """Runs a command to its end."""
        async with self.started(*arguments, **environment) as process, asyncio.timeout(DEADLINE):
            out, err = await process.communicate(_text(given).encode())
        assert process.returncode is not None
        return Ran(process.returncode, out.decode(), err.decode())

    @asynccontextmanager
    async def started(self, *arguments: str, **environment: str) -> AsyncIterator[asyncio.subprocess.Process]:
        """A command that runs on; it is ended on leaving."""
        command = [self.binary, "--kubeconfig", str(self.kubeconfig), "--namespace", self.namespace, *arguments]
        variables = {**os.environ, "HOME": str(self.home), **environment}
        process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=variables)
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    async def read(self, *what: str) -> dict[str, Any]:
        """An object, or a list, as data."""
        found: dict[str, Any] = json.loads(await self("get", *what, "-o", "json"))
        return found


def _text(given: object) -> str:
    if given is None:
        return ""
    if isinstance(given, str):
        return given
    return yaml.safe_dump_all(given if isinstance(given, list) else [given])
