"""Documents as text, in the ways in which people and tools write manifests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import yaml

Object = dict[str, Any]


class _Dumper(yaml.SafeDumper):
    """Long text in a block of its own, and nothing by reference."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


class _Indented(_Dumper):
    """Lists are indented below their key."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, indentless=False)


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)


def plain(documents: Sequence[Object]) -> str:
    """One below the other, lists not indented."""
    return "---\n".join(_dumped(_Dumper, each) for each in documents)


def commented(documents: Sequence[Object]) -> str:
    """As people keep them by hand: a comment above each, lists indented, a separator too many at the end."""
    texts = (f"# {number}: {each['kind']}\n\n{_dumped(_Indented, each)}" for number, each in enumerate(documents, 1))
    return "# Kept by hand.\n---\n" + "\n---\n".join(texts) + "\n---\n# Nothing more.\n"


def compact(documents: Sequence[Object]) -> str:
    """What is innermost stands in brackets; documents begin and end with their markers, and keys are sorted."""
    return yaml.dump_all(documents, Dumper=_Dumper, default_flow_style=None, explicit_start=True, explicit_end=True, width=100)


def in_json(documents: Sequence[Object]) -> str:
    """As tools write it: JSON, all of it one List."""
    items = {"apiVersion": "v1", "kind": "List", "items": documents}
    return json.dumps(items, indent=2) + "\n"


def _dumped(dumper: type[_Dumper], document: Object) -> str:
    return str(yaml.dump(document, Dumper=dumper, sort_keys=False, width=110))
