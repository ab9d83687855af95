"""What kustomize builds of the folders below manifests/."""

from __future__ import annotations

import copy
import functools
import shutil
import subprocess
from pathlib import Path
from typing import Any

import yaml

from programs import program

Manifest = dict[str, Any]
MANIFESTS = Path(__file__).parents[2] / "manifests"
OVERLAYS = sorted(folder.name for folder in (MANIFESTS / "overlays").iterdir())
COMPONENTS = sorted(folder.name for folder in (MANIFESTS / "components").iterdir())


@functools.cache
def text_of(folder: Path) -> str:
    """What `kubectl kustomize` prints."""
    built = subprocess.run([program("kubectl"), "kustomize", str(folder)], capture_output=True, text=True, check=False, timeout=60)
    assert built.returncode == 0, built.stderr
    return built.stdout


def manifests_of(folder: Path) -> list[Manifest]:
    """The same as data, which the caller may change."""
    return documents(text_of(folder))


def documents(text: str) -> list[Manifest]:
    """The manifests in a text, which the caller may change; the same text is parsed once, by libyaml."""
    return copy.deepcopy(_parsed(text))


@functools.lru_cache(maxsize=64)
def _parsed(text: str) -> list[Manifest]:
    return [each for each in yaml.load_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)) if each]


def with_components(overlay: str, components: list[str], folder: Path) -> Path:
    """A copy of the manifests in which an overlay has these components; answers where to build."""
    shutil.copytree(MANIFESTS.parent / "crds", folder / "crds")
    shutil.copytree(MANIFESTS, folder / "manifests", ignore=shutil.ignore_patterns("helm"))
    root = folder / "manifests" / "ours"
    root.mkdir()
    content = {"resources": [f"../overlays/{overlay}"], "components": [f"../components/{name}" for name in components]}
    (root / "kustomization.yaml").write_text(yaml.safe_dump(content))
    return root


def one(manifests: list[Manifest], kind: str) -> Manifest:
    """The only manifest of a kind."""
    (found,) = (each for each in manifests if each["kind"] == kind)
    return found


def pod_of(manifests: list[Manifest]) -> Manifest:
    """The spec of the scheduler's pods."""
    spec: Manifest = one(manifests, "Deployment")["spec"]["template"]["spec"]
    return spec


def restrictions_broken(pod: Manifest) -> list[str]:
    """Rules of the Pod Security Standard `restricted` that a pod breaks, and the read-only root."""
    context, broken = pod.get("securityContext", {}), []
    volumes = {kind for volume in pod.get("volumes", ()) for kind in volume if kind != "name"}
    rules = {
        "hostNetwork": not any(pod.get(each) for each in ("hostNetwork", "hostPID", "hostIPC")),
        "volumes": volumes <= {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"},
        "runAsNonRoot": context.get("runAsNonRoot") is True and context.get("runAsUser", 0) > 0,
        "seccompProfile": context.get("seccompProfile", {}).get("type") == "RuntimeDefault",
    }
    for container in pod["containers"]:
        own = container.get("securityContext", {})
        rules |= {
            "privileged": not own.get("privileged"),
            "allowPrivilegeEscalation": own.get("allowPrivilegeEscalation") is False,
            "capabilities": own.get("capabilities") == {"drop": ["ALL"]},
            "hostPorts": not any("hostPort" in port for port in container.get("ports", ())),
            "readOnlyRootFilesystem": own.get("readOnlyRootFilesystem") is True,
        }
        broken += [name for name, kept in rules.items() if not kept]
    return broken
