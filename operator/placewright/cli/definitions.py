"""Where the custom resource definitions are: in a checkout beside the source root, in an installed package inside it."""

from __future__ import annotations

from pathlib import Path


def crd_folders() -> tuple[Path, ...]:
    """Folders of YAML definitions that a cluster needs for Placewright; empty when none is found."""
    package = Path(__file__).resolve().parents[1]
    candidates = (package / "crds", package.parents[1] / "crds")
    return tuple(folder for folder in candidates if folder.is_dir())[:1]
