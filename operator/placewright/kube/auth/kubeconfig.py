"""Checks a kubeconfig before the official client reads it: that client's messages do not always name the file or the field.

A value in the wrong place is never quoted: it may be a token.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml
from yarl import URL

from placewright.api.bad_input import shown
from placewright.api.yamldocs import only_document
from placewright.kube.errors import ConfigError

_SECTIONS: Final = ("clusters", "contexts", "users")
#: Bytes; a thousand clusters with their certificates take a quarter of it.
_LARGEST: Final = 16 * 2**20


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """One or several files, merged: the first file that names an entry wins, as with kubectl.

    Attributes:
        paths: the files, joined as in `KUBECONFIG`.
        context: name of the context to use.
        user: the context's user entry; empty for none.
    """

    paths: str
    context: str
    user: dict[str, Any]


def read_kubeconfig(files: Sequence[str], context: str | None) -> Kubeconfig:
    """Read and check the files.

    Args:
        files: paths of files that exist.
        context: name of a context; None for the files' current one.

    Raises:
        ConfigError: a file cannot be read, or a field has another shape than it must have.
    """
    read = [(path, _read(path)) for path in files]
    where = os.pathsep.join(files)
    named = {section: _by_name(section, read) for section in _SECTIONS}
    current = next((content["current-context"] for _, content in read if content.get("current-context")), "")
    chosen = str(context or current)
    if chosen not in named["contexts"]:
        field = "--context" if context else "current-context"
        allowed = ", ".join(sorted(named["contexts"])) or "none, there are no contexts"
        raise ConfigError(f"kubeconfig {where}: {field}: found {chosen!r}; allowed {allowed}")
    entry = _part(where, f"contexts[{chosen}].context", named["contexts"][chosen].get("context"))
    cluster = _referred(where, chosen, "cluster", entry, named["clusters"], required=True)
    _check_server(f"kubeconfig {where}: clusters[{entry['cluster']}].cluster.server", cluster.get("server"))
    user = _referred(where, chosen, "user", entry, named["users"], required=False)
    return Kubeconfig(where, chosen, user)


def _check_server(field: str, server: object) -> None:
    try:
        url = URL(server) if isinstance(server, str) else URL()
        usable = url.scheme in ("http", "https") and bool(url.host) and url.port is not None
    except ValueError:
        usable = False
    if not usable:
        raise ConfigError(f"{field}: found {shown(server)}; allowed a URL with http:// or https://")
    if url.user or url.password:
        raise ConfigError(f"{field}: found a user name in the URL; allowed none, as messages show the URL: credentials belong to users")


def _read(path: str) -> dict[str, Any]:
    try:
        if (size := Path(path).stat().st_size) > _LARGEST:
            raise ConfigError(f"kubeconfig {path}: found {size} bytes; allowed at most {_LARGEST}")
        content = only_document(Path(path).read_text("utf-8"), worded=True)
    except yaml.YAMLError as error:
        raise ConfigError(f"kubeconfig {path}: not YAML: {_described(error)}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"kubeconfig {path}: cannot be read: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict):
        raise ConfigError(f"kubeconfig {path}: found {_sort(content)}; allowed a mapping with clusters, contexts and users")
    return content


def _described(error: yaml.YAMLError) -> str:
    """Return the problem and its place in the file. The error's own text would quote the line, which may hold a token."""
    mark = getattr(error, "problem_mark", None)
    problem = " ".join(str(getattr(error, "problem", None) or getattr(error, "reason", None) or "cannot be read").split())
    return f"{problem} in line {mark.line + 1}, column {mark.column + 1}" if mark else problem


def _sort(value: object) -> str:
    """Name the type of a value without showing the value."""
    return "nothing" if value is None else type(value).__name__


def _by_name(section: str, read: Sequence[tuple[str, dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    merged: dict[str, dict[str, Any]] = {}
    for path, content in read:
        entries = content.get(section) or []
        if not isinstance(entries, list):
            raise ConfigError(f"kubeconfig {path}: {section}: found {_sort(entries)}; allowed a list")
        for number, entry in enumerate(entries):
            if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
                raise ConfigError(f"kubeconfig {path}: {section}[{number}]: found {_sort(entry)}; allowed a mapping with a name")
            merged.setdefault(entry["name"], entry)
    return merged


def _referred(
    where: str, context: str, kind: str, entry: dict[str, Any], named: dict[str, dict[str, Any]], *, required: bool
) -> dict[str, Any]:
    """Find the cluster or user that the context names."""
    name = entry.get(kind)
    if not name and not required:
        return {}
    if name not in named:
        allowed = ", ".join(sorted(named)) or f"none, there are no {kind}s"
        raise ConfigError(f"kubeconfig {where}: contexts[{context}].context.{kind}: found {name!r}; allowed {allowed}")
    found = named[name].get(kind)
    return _part(where, f"{kind}s[{name}].{kind}", {} if found is None and not required else found)


def _part(where: str, field: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError(f"kubeconfig {where}: {field}: found {_sort(value)}; allowed a mapping")
    return value
