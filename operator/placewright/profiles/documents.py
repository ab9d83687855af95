"""YAML text to plain values, as Kubernetes reads it: no repeated keys, no dates, nothing executed."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

import yaml

from placewright.profiles.problem import Problem, ProfileError

#: A file larger than this is not a profile.
MAX_CHARACTERS: Final = 1_048_576
_TIMESTAMP: Final = "tag:yaml.org,2002:timestamp"


class _Loader(yaml.SafeLoader):
    """Refuses repeated keys; dates stay text."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT002 - PyYAML's signature
        """As the parent, after looking at the keys."""
        seen: set[str] = set()
        for key, _value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if key.value in seen:
                raise yaml.MarkedYAMLError(problem=f"the key {key.value!r} a second time", problem_mark=key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def _as_text(loader: _Loader, node: yaml.ScalarNode) -> Any:
    return loader.construct_scalar(node)


_Loader.add_constructor(_TIMESTAMP, _as_text)


def parse_documents(text: str) -> list[Any]:
    """All documents of a YAML text that are not empty; raise `ProfileError` with line and column."""
    if len(text) > MAX_CHARACTERS:
        raise ProfileError([Problem("", f"{len(text)} characters", f"at most {MAX_CHARACTERS}")])
    try:
        documents = [document for document in yaml.load_all(text, _Loader) if document is not None]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ProfileError([Problem(where, str(error.problem), "YAML")]) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ProfileError([Problem("", str(error).splitlines()[0], "YAML")]) from None
    if not documents:
        raise ProfileError([Problem("", "an empty document", "a profile")])
    return documents
