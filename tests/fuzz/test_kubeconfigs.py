"""Kubeconfig files: a cluster to speak to, or one line that names the file and quotes no credential."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from yarl import URL

from fuzz.effort import bounded, fuzz, outcome
from fuzz.mutants import Document, mutants, torn
from placewright.kube.auth.login import ClusterAccess, load_config
from placewright.kube.errors import ConfigError

SECRET = "c2VjcmV0LXRva2Vu"
KUBECONFIGS: tuple[Document, ...] = tuple(
    {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "k", "cluster": {"server": "https://127.0.0.1:6443", "tls-server-name": "n", "proxy-url": "http://p:3128"}}],
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u", "namespace": "n"}}],
        "users": [{"name": "u", "user": user}],
    }
    for user in (
        {"token": SECRET},
        {"username": "me", "password": SECRET},
        {"client-certificate-data": SECRET, "client-key-data": SECRET},
        {"auth-provider": {"name": "oidc", "config": {"id-token": SECRET}}},
    )
)


def is_sound(content: bytes, folder: Path) -> bool:
    """Whether it leads to a server, with what can stand in a header, or is refused in a line that names the file and no secret."""
    path = folder / "config"
    path.write_bytes(content)
    with bounded(len(content)):
        found = outcome(lambda: load_config(str(path)), ConfigError)
    if isinstance(found, ClusterAccess):
        return bool(URL(found.server).host) and found.authorization.isprintable()
    line = str(found)
    return line.startswith(f"kubeconfig {path}: ") and "\n" not in line and SECRET not in line


def test_the_first_seed_is_valid(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(json.dumps(KUBECONFIGS[0]))
    assert load_config(str(path)).authorization == f"Bearer {SECRET}"


@fuzz(60, document=mutants(KUBECONFIGS))
def test_a_changed_kubeconfig_is_used_or_refused(document: Document, tmp_path: Path) -> None:
    assert is_sound(json.dumps(document).encode(), tmp_path)


@fuzz(40, content=torn(KUBECONFIGS))
def test_a_torn_kubeconfig_is_used_or_refused(content: bytes, tmp_path: Path) -> None:
    assert is_sound(content, tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "clusters:\n" + "".join(f"- &a{i} [{', '.join([f'*a{i - 1}'] * 9) if i else 'x'}]\n" for i in range(30)),
        "clusters: " + "[" * 100_000,
        "users: &u [*u]\n",
        "&a {contexts: [*a]}\n",
    ],
    ids=["laughs", "nesting", "in itself", "a document in itself"],
)
def test_a_bomb_is_refused(text: str, tmp_path: Path) -> None:
    assert is_sound(text.encode(), tmp_path)
    with pytest.raises(ConfigError, match="not YAML"):
        load_config(str(tmp_path / "config"))
