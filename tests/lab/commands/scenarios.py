"""Small clusters in files, on which two profiles decide differently."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from placewright import testing as kit

NODES = 4
PODS = 6


def scenario_file(folder: Path) -> Path:
    """Write four nodes of four CPUs, and pods that fit on each."""
    path = folder / "scenario.json"
    items = [kit.node(f"n{index}", pods="20").zone(f"zone-{index % 2}").manifest for index in range(NODES)]
    items += [kit.pod(f"web-{index}", cpu="1", memory="1Gi").namespace("shop").manifest for index in range(PODS)]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return path


def profile_file(folder: Path, name: str, **spec: Any) -> Path:
    """Write a profile for pods that name no scheduler."""
    path = folder / f"{name}.json"
    path.write_text(json.dumps(kit.profile(name).spec(**spec).manifest))
    return path
