"""`placewright run` on a Kopf with the patches of `docs/upstream/`: Kopf's public options take the adapter's place.

A program: its search path begins with a folder that holds the patched Kopf. At its end it prints the plurals of the resources whose
events Kopf's workers processed, and the lines that the decoder of ours decoded.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import kopf
import msgspec
from kopf._core.reactor import processing

from placewright.api.profile import GROUP, PLURAL, VERSION
from placewright.engine.engine import Engine
from placewright.handlers import events, kopftasks, lifecycle
from placewright.handlers.operator import run

_UPSTREAM: Final = Path(__file__).parents[2] / "docs" / "upstream"
#: In the order in which they apply.
PATCHES: Final = ("kopf-direct-handlers.patch", "kopf-json-loads.patch")


def patched_kopf(folder: Path) -> Path:
    """Copy the installed Kopf into the folder and apply the patches; fails where one does not apply: then see `docs/upstream/kopf.md`."""
    shutil.copytree(Path(kopf.__file__).parent, folder / "kopf", ignore=shutil.ignore_patterns("__pycache__"))
    for patch in PATCHES:
        # A ceiling, so that git takes no repository above for the one that the patch is about.
        environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent)}
        subprocess.run(["git", "apply", str(_UPSTREAM / patch)], cwd=folder, env=environment, check=True)
    return folder


def main() -> None:
    decoded: list[str] = []
    through_workers: set[str] = set()
    processed = processing.process_resource_event

    async def noted(*, resource: Any, **rest: Any) -> Any:
        through_workers.add(resource.plural)
        return await processed(resource=resource, **rest)

    def decode(line: str) -> Any:
        decoded.append(line)
        return msgspec.json.decode(line)

    async def start(settings: Any, memo: kopf.Memo, **rest: Any) -> None:
        await lifecycle.start(settings=settings, memo=memo, **rest)
        settings.networking.json_loads = decode

    def registry(engine: Engine) -> kopf.OperatorRegistry:
        made = kopf.OperatorRegistry()
        kopf.on.startup(registry=made)(start)
        kopf.on.login(registry=made)(lifecycle.login)
        kopf.on.cleanup(registry=made)(lifecycle.stop)
        kopf.on.event("", "v1", "pods", direct=True, registry=made)(events.pod_event)  # type: ignore[call-arg]
        kopf.on.event(GROUP, VERSION, PLURAL, registry=made)(events.profile_event)
        return made

    processing.process_resource_event = noted  # type: ignore[assignment]
    kopftasks._registry = registry
    kopftasks.direct_delivery = lambda *_: contextlib.nullcontext()  # type: ignore[assignment]
    kopftasks.quick_decoding = contextlib.nullcontext  # type: ignore[assignment]
    run(os.environ["KUBECONFIG"])
    pods = sum('"kind":"Pod"' in line.replace(" ", "") for line in decoded)
    sys.stdout.write(f"workers: {' '.join(sorted(through_workers))}\ndecoded: {pods}\n")


if __name__ == "__main__":
    main()
