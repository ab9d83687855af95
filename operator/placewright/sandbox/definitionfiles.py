"""Custom resource definitions from a folder of YAML files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import yaml

from .status import Object


def read_definitions(folder: Path) -> Iterator[Object]:
    """The definitions in `*.yaml` and `*.yml`, in order of file name; other kinds are passed over.

    Raises ValueError, with file and reason, for what is no YAML or no Kubernetes object; OSError when unreadable.
    """
    for file in sorted(each for each in folder.iterdir() if each.suffix in (".yaml", ".yml")):
        try:
            documents = list(yaml.safe_load_all(file.read_text(encoding="utf-8")))
        except (yaml.YAMLError, UnicodeError) as error:
            raise ValueError(f"{file}: not YAML: {' '.join(str(error).split())}") from error
        for content in documents:
            if content is None:
                continue
            if not isinstance(content, dict) or "kind" not in content:
                raise ValueError(f"{file}: a Kubernetes object with a kind is expected, found {content!r:.100}")
            if content["kind"] == "CustomResourceDefinition":
                yield content
