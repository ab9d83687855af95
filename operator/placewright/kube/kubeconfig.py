"""A kubeconfig, checked before the official client reads it: its own messages do not always name the file or the field."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from placewright.kube.errors import ConfigError

_SECTIONS: Final = ("clusters", "contexts", "users")


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """One or several files, read as one; the first file that says something wins, as with kubectl.

    Attributes:
        paths: the files, joined as in `KUBECONFIG`.
        context: name of the context to use.
        user: the context's user entry, empty for none.
    """

    paths: str
    context: str
    user: dict[str, Any]


def read_kubeconfig(files: Sequence[str], context: str | None) -> Kubeconfig:
    """Read and check the files; `context` None takes the files' current one. Raises `ConfigError`."""
    read = [(path, _read(path)) for path in files]
    where = os.pathsep.join(files)
    named = {section: _by_name(section, read) for section in _SECTIONS}
    current = next((content["current-context"] for _, content in read if content.get("current-context")), "")
    chosen = str(context or current)
    if chosen not in named["contexts"]:
        field = "--context" if context else "current-context"
        allowed = ", ".join(sorted(named["contexts"])) or "none, there are no contexts"
        raise ConfigError(f"kubeconfig {where}: {field}: found {chosen!r}; allowed: {allowed}")
    entry = _part(where, f"contexts[{chosen}].context", named["contexts"][chosen].get("context"))
    cluster = _referred(where, chosen, "cluster", entry, named["clusters"], required=True)
    server = cluster.get("server")
    if not isinstance(server, str) or not server.startswith(("http://", "https://")):
        field = f"clusters[{entry['cluster']}].cluster.server"
        raise ConfigError(f"kubeconfig {where}: {field}: found {server!r:.200}; a URL with http:// or https:// is needed")
    user = _referred(where, chosen, "user", entry, named["users"], required=False)
    return Kubeconfig(where, chosen, user)


def _read(path: str) -> dict[str, Any]:
    try:
        content = yaml.safe_load(Path(path).read_text("utf-8"))
    except yaml.YAMLError as error:
        raise ConfigError(f"kubeconfig {path}: not YAML: {' '.join(str(error).split())}") from None
    except (OSError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"kubeconfig {path}: cannot be read: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict):
        found = "nothing" if content is None else type(content).__name__
        raise ConfigError(f"kubeconfig {path}: found {found}; a mapping with clusters, contexts and users is needed")
    return content


def _by_name(section: str, read: Sequence[tuple[str, dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    merged: dict[str, dict[str, Any]] = {}
    for path, content in read:
        entries = content.get(section) or []
        if not isinstance(entries, list):
            raise ConfigError(f"kubeconfig {path}: {section}: found {type(entries).__name__}; a list is needed")
        for number, entry in enumerate(entries):
            if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
                raise ConfigError(f"kubeconfig {path}: {section}[{number}]: found {entry!r:.80}; a mapping with a name is needed")
            merged.setdefault(entry["name"], entry)
    return merged


def _referred(
    where: str, context: str, kind: str, entry: dict[str, Any], named: dict[str, dict[str, Any]], *, required: bool
) -> dict[str, Any]:
    """What the context names as its cluster or user."""
    name = entry.get(kind)
    if not name and not required:
        return {}
    if name not in named:
        allowed = ", ".join(sorted(named)) or f"none, there are no {kind}s"
        raise ConfigError(f"kubeconfig {where}: contexts[{context}].context.{kind}: found {name!r}; allowed: {allowed}")
    found = named[name].get(kind)
    return _part(where, f"{kind}s[{name}].{kind}", {} if found is None and not required else found)


def _part(where: str, field: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError(f"kubeconfig {where}: {field}: found {value!r:.80}; a mapping is needed")
    return value
