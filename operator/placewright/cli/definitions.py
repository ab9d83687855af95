"""Finds the custom resource definitions: in a checkout beside the source root, in an installed package inside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from placewright.api.yamldocs import read_documents


def crd_folders() -> tuple[Path, ...]:
    """Find the folders of definitions that a cluster needs for Placewright, groups of pods included.

    Returns:
        The folders; none when no definitions are found.
    """
    package = Path(__file__).resolve().parents[1]
    candidates = (package / "crds", package.parents[1] / "crds")
    found = next((folder for folder in candidates if folder.is_dir()), None)
    return () if found is None else tuple(folder for folder in (found, found / "groups") if folder.is_dir())


def shipped_definitions() -> Iterator[dict[str, Any]]:
    """Read the custom resource definitions.

    Yields:
        The definitions, in the order of file names.
    """
    for file in (file for folder in crd_folders() for file in sorted(folder.glob("*.yaml"))):
        for document in read_documents(file.read_text("utf-8"), str(file)):
            if document.value.get("kind") == "CustomResourceDefinition":
                yield document.value
