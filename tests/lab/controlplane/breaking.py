"""What may befall a real control plane: its programs are killed, and etcd forgets."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

from placewright_lab.controlplane.server import ControlPlane


def kill_api_server(plane: ControlPlane) -> None:
    """Kill the API server like a crash does: nothing is finished. etcd stays."""
    if plane._api_server is not None:
        plane._api_server.kill()
        plane._api_server = None


def kill_etcd(plane: ControlPlane) -> None:
    """Kill etcd like a crash does. Its confirmed writes stay. The API server also stays, and can do nothing."""
    if plane._etcd is not None:
        plane._etcd.kill()
        plane._etcd = None


def forget_history(plane: ControlPlane) -> None:
    """Compact etcd up to now, so that a request for an older version gets 410. The API server's own watch cache still remembers.

    A key of our own is written first, so that "now" is newer than all earlier versions.
    """
    answer = _ask_etcd(plane, "put", {"key": "cGxhY2V3cmlnaHQ=", "value": "MQ=="})
    _ask_etcd(plane, "compaction", {"revision": answer["header"]["revision"], "physical": True})


def _ask_etcd(plane: ControlPlane, command: str, body: dict[str, Any]) -> Any:
    """Make one call through etcd's JSON gateway, which needs no client program."""
    url = f"https://127.0.0.1:{plane._ports.etcd}/v3/kv/{command}"
    request = urllib.request.Request(url, json.dumps(body).encode())
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=plane._context()))
    with opener.open(request, timeout=10.0) as answer:
        return json.load(answer)
