"""A cluster with Placewright installed as it is shipped; what the operator gets is its ServiceAccount's token and nothing else."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright_lab.controlplane.installation import (
    BASE,
    NAMESPACE,
    PEERING,
    PROFILES,
    USER,
    apply,
    apply_shipped,
    ask_for_token,
    shipped,
)
from placewright_lab.controlplane.server import ControlPlane

__all__ = ["BASE", "NAMESPACE", "PEERING", "PROFILES", "USER", "Installation", "apply", "install", "shipped", "the_shipped"]


@dataclass(frozen=True)
class Installation:
    """Where Placewright is installed.

    Attributes:
        kubeconfig: of somebody who may do everything.
        control_plane: ours, or None on a cluster that KUBECONFIG_E2E names: nothing can be killed there, and no audit log is read.
        operator_kubeconfig: of the operator's ServiceAccount.
        folder: for logs.
    """

    kubeconfig: Path
    control_plane: ControlPlane | None
    operator_kubeconfig: Path
    folder: Path


def install(kubeconfig: Path, control_plane: ControlPlane | None, folder: Path) -> Installation:
    """Apply what is shipped, and ask for the token. Not to be called from inside an event loop."""
    token = asyncio.run(_apply_all(kubeconfig))
    path = folder / "operator.kubeconfig"
    if control_plane is not None:
        control_plane.kubeconfig_of(token, path)
    else:
        path.write_text(_with_token(kubeconfig, token))
        path.chmod(0o600)
    return Installation(kubeconfig, control_plane, path, folder)


async def _apply_all(kubeconfig: Path) -> str:
    async with ApiClient(load_config(str(kubeconfig))) as client:
        await apply_shipped(client)
        return await ask_for_token(client)


def _with_token(kubeconfig: Path, token: str) -> str:
    """The current context of a kubeconfig, with this token in place of its user."""
    content = yaml.safe_load(kubeconfig.read_text())
    context = next(each["context"] for each in content["contexts"] if each["name"] == content["current-context"])
    cluster = next(each["cluster"] for each in content["clusters"] if each["name"] == context["cluster"])
    if authority := cluster.get("certificate-authority"):
        cluster["certificate-authority"] = str(kubeconfig.parent / authority)
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "operator",
            "contexts": [{"name": "operator", "context": {"cluster": "cluster", "user": "operator"}}],
            "clusters": [{"name": "cluster", "cluster": cluster}],
            "users": [{"name": "operator", "user": {"token": token}}],
        }
    )


def the_shipped(kind: str) -> dict[str, Any]:
    """The one manifest of this kind."""
    (found,) = (each for each in shipped() if each["kind"] == kind)
    return found
