"""Where the custom resource definitions are: in a checkout beside the source root, in an installed package inside it."""

from __future__ import annotations

from pathlib import Path


def crd_folders() -> tuple[Path, ...]:
    """Folders of YAML definitions that a cluster of its own needs for Placewright, groups of pods included; empty when none is found."""
    package = Path(__file__).resolve().parents[1]
    candidates = (package / "crds", package.parents[1] / "crds")
    found = next((folder for folder in candidates if folder.is_dir()), None)
    return () if found is None else tuple(folder for folder in (found, found / "groups") if folder.is_dir())
