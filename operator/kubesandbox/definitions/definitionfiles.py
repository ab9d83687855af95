"""Custom resource definitions from a folder of YAML files."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from kubesandbox.status import Object
from placewright.api.yamldocs import documents


def read_definitions(folder: Path) -> Iterator[Object]:
    """The definitions in `*.yaml` and `*.yml`, in order of file name; other kinds are passed over.

    Raises ValueError, with file and reason, for what is no YAML or no Kubernetes object; OSError when unreadable.
    """
    for file in sorted(each for each in folder.iterdir() if each.suffix in (".yaml", ".yml")):
        try:
            found = _documents(file.read_text(encoding="utf-8"))
        except (yaml.YAMLError, UnicodeError) as error:
            raise ValueError(f"{file}: not YAML: {' '.join(str(error).split())}") from error
        for content in found:
            if not isinstance(content, dict) or "kind" not in content:
                raise ValueError(f"{file}: a Kubernetes object with a kind is expected, found {content!r:.100}")
            if content["kind"] == "CustomResourceDefinition":
                yield copy.deepcopy(content)


@lru_cache(maxsize=32)
def _documents(text: str) -> tuple[Any, ...]:
    """Parse a text once a process: all sandboxes share the documents. Callers copy a document before they change it."""
    return tuple(document.value for document in documents(text))
