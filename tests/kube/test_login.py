from __future__ import annotations

import asyncio
import json
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from kubesandbox.server import Sandbox
from placewright.api.bad_input import InputError
from placewright.kube.auth.login import ClusterAccess, _in_cluster, load_config
from placewright.kube.client import ApiClient
from placewright.kube.errors import ConfigError


def kubeconfig(folder: Path, user: dict[str, Any] | None = None, name: str = "config", **cluster: Any) -> str:
    """A kubeconfig with contexts `one` (current) and `two`."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "one",
        "clusters": [
            {"name": "c1", "cluster": {"server": "http://127.0.0.1:1", **cluster}},
            {"name": "c2", "cluster": {"server": "http://127.0.0.1:2"}},
        ],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [
            {"name": "one", "context": {"cluster": "c1", "user": "u"}},
            {"name": "two", "context": {"cluster": "c2", "user": "u"}},
        ],
    }
    path = folder / name
    path.write_text(yaml.safe_dump(content))
    return str(path)


def test_the_current_context_is_used_and_another_on_request(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, {"token": "secret"})
    assert (load_config(path).server, load_config(path).context) == ("http://127.0.0.1:1", "one")
    assert load_config(path, "two").server == "http://127.0.0.1:2"
    assert load_config(path).authorization == "Bearer secret"


def test_the_environment_names_several_files_that_are_merged(tmp_path: Path) -> None:
    first = kubeconfig(tmp_path, name="a")
    second = tmp_path / "b"
    second.write_text(
        yaml.safe_dump(
            {
                "clusters": [{"name": "c3", "cluster": {"server": "http://127.0.0.1:3"}}],
                "users": [],
                "contexts": [{"name": "three", "context": {"cluster": "c3"}}],
            }
        )
    )
    environ = {"KUBECONFIG": f"{first}:{second}:{tmp_path}/absent"}
    assert load_config(None, "three", environ).server == "http://127.0.0.1:3"
    assert load_config(None, None, environ).context == "one"


def minimal(cluster: str = "{server: 'https://x'}", context: str = "{cluster: c}", current: str = "x") -> str:
    """The least that makes a kubeconfig, with one part spoilt."""
    return f"clusters: [{{name: c, cluster: {cluster}}}]\ncontexts: [{{name: x, context: {context}}}]\ncurrent-context: '{current}'\n"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "found nothing"),
        ("{", "not YAML"),
        ("- a\n- b\n", "found list; allowed a mapping"),
        ("just text", "mapping"),
        ("\x00\x01", "not YAML"),
        ("clusters: [3]\n", "clusters[0]: found int; allowed a mapping with a name"),
        ("kind: Config\n", "there are no contexts"),
        ("clusters: none\ncontexts: []\n", "clusters"),
        (minimal(current=""), "current-context: found ''; allowed x"),
        (minimal(context="{cluster: d}"), "contexts[x].context.cluster: found 'd'; allowed c"),
        (minimal(context="{cluster: c, user: ghost}"), "contexts[x].context.user: found 'ghost'; allowed none"),
        (minimal(context="7"), "contexts[x].context: found int"),
        (minimal(cluster="[]"), "clusters[c].cluster: found list"),
        (minimal(cluster="{server: 'ftp://x'}"), "clusters[c].cluster.server: found 'ftp://x'; allowed a URL"),
        (minimal(cluster="{server: 'https://'}"), "clusters[c].cluster.server: found 'https://'; allowed a URL"),
        (minimal(cluster="{server: 'https://[x'}"), "clusters[c].cluster.server: found 'https://[x'; allowed a URL"),
        (minimal(cluster="{server: 'https://x:y'}"), "clusters[c].cluster.server: found 'https://x:y'; allowed a URL"),
        (minimal(cluster="{server: 'https://me:hidden@x'}"), "clusters[c].cluster.server: found a user name in the URL"),
        ("[" * 10_000, "not YAML: nesting deeper than 100 in line 1, column 101"),
        ("clusters: &a [*a]\n", "not YAML: an alias to something that it is part of in line 1, column 15"),
        ("clusters: !!int ''\n", "not YAML: something that is no int in line 1, column 11"),
        (minimal(cluster="{}"), "clusters[c].cluster.server: found nothing; allowed a URL"),
        (minimal(cluster="{server: 'https://x', certificate-authority-data: '!!'}"), "context x"),
        (minimal(cluster="{server: 'https://x', certificate-authority: absent.crt}"), "absent.crt"),
    ],
)
def test_a_wrong_kubeconfig_is_refused_in_one_line_with_the_file(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "config"
    path.write_text(content)
    with pytest.raises(ConfigError) as caught:
        load_config(str(path))
    assert str(path) in str(caught.value) and said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, InputError)


SECRET = "do-not-show"


@pytest.mark.parametrize(
    "content",
    [
        f"users: [{{user: {{token: {SECRET}}}}}]\n",
        f"users: [{{name: u, user: {SECRET}}}]\ncontexts: [{{name: x, context: {{cluster: c, user: u}}}}]\n"
        "clusters: [{name: c, cluster: {server: 'https://x'}}]\ncurrent-context: x\n",
        f"users:\n- name: u\n  user: {{token: {SECRET}, [}}\n",
        f"users: {SECRET}\n",
        SECRET,
        f'users: [{{name: u, user: {{token: "{SECRET}\\n{SECRET}"}}}}]\ncontexts: [{{name: x, context: {{cluster: c, user: u}}}}]\n'
        "clusters: [{name: c, cluster: {server: 'https://x'}}]\ncurrent-context: x\n",
        f"clusters: [{{name: c, cluster: {{server: 'https://me:{SECRET}@x'}}}}]\ncontexts: [{{name: x, context: {{cluster: c}}}}]\n"
        "current-context: x\n",
    ],
    ids=["no name", "no mapping", "no YAML", "no list", "just text", "two lines", "in the URL"],
)
def test_no_credential_is_quoted_where_a_kubeconfig_is_wrong(tmp_path: Path, content: str) -> None:
    path = tmp_path / "config"
    path.write_text(content)
    with pytest.raises(ConfigError) as caught:
        load_config(str(path))
    assert str(path) in str(caught.value)
    assert SECRET not in str(caught.value)


def test_a_server_that_is_not_verified_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    load_config(kubeconfig(tmp_path, server="https://127.0.0.1:1", **{"insecure-skip-tls-verify": True}))
    assert "the certificate of https://127.0.0.1:1 is not verified" in caplog.text


def test_a_token_without_encryption_is_warned_of_and_not_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    load_config(kubeconfig(tmp_path, {"token": SECRET}))
    assert "credentials go to http://127.0.0.1:1 without encryption" in caplog.text
    assert SECRET not in caplog.text


def test_an_ordinary_server_is_no_reason_to_warn(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    load_config(kubeconfig(tmp_path, {"token": SECRET}, server="https://127.0.0.1:1"))
    assert caplog.text == ""


async def test_a_plugin_that_hangs_does_not_hold_up_requests_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placewright.kube.auth.login._LONGEST_LOOK", 0.05)
    free = threading.Event()

    def hang(forced: bool) -> ClusterAccess:
        free.wait(60)
        return ClusterAccess("http://x", authorization="fresh")

    access = ClusterAccess("http://x", authorization="old", reload=hang)
    access.rejected()
    try:
        await asyncio.wait_for(access.refresh_when_due(), 30)
        assert access.authorization == "old"
    finally:
        free.set()


def test_an_unknown_context_is_refused_with_those_that_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--context: found 'nine'; allowed one, two"):
        load_config(kubeconfig(tmp_path), "nine")


def test_a_named_file_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ConfigError, match="/absent/file: no such file"):
        load_config("/absent/file")


def test_without_any_configuration_the_places_looked_at_are_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ConfigError, match="--kubeconfig"):
        load_config(None, None, {})


def test_a_proxy_in_the_kubeconfig_is_used(tmp_path: Path) -> None:
    assert load_config(kubeconfig(tmp_path, **{"proxy-url": "http://proxy:3128"})).proxy == "http://proxy:3128"


@pytest.mark.parametrize(
    ("server", "excepted", "used"),
    [
        ("https://api.example.test:6443", "", "http://proxy:3128"),
        ("https://api.example.test:6443", ".example.test", None),
        ("https://10.1.2.3", "10.0.0.0/8", None),
        ("https://127.0.0.1:6443", "", None),
        ("https://localhost:6443", "", None),
    ],
)
def test_a_proxy_of_the_environment_is_used_as_kubectl_uses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: str, excepted: str, used: str | None
) -> None:
    """Not before addresses of this machine, nor before those that NO_PROXY names; one in the kubeconfig goes before."""
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    monkeypatch.setenv("NO_PROXY", excepted)
    assert load_config(kubeconfig(tmp_path, server=server)).proxy == used
    assert load_config(kubeconfig(tmp_path, server=server, **{"proxy-url": "http://other:1"})).proxy == "http://other:1"


def plugin(folder: Path, credential: dict[str, Any], *, fails: bool = False) -> dict[str, Any]:
    """A user entry with an exec plugin that prints the credential and counts its runs in `runs`."""
    script = folder / "plugin.py"
    status = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": credential}
    script.write_text(
        f"open({str(folder / 'runs')!r}, 'a').write('x')\n" + ("raise SystemExit(3)\n" if fails else f"print({json.dumps(status)!r})\n")
    )
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": [str(script)],
            "interactiveMode": "Never",
        }
    }


def test_an_exec_plugins_token_is_used_and_asked_for_again_only_when_it_expires_or_was_refused(tmp_path: Path) -> None:
    user = plugin(tmp_path, {"token": "made", "expirationTimestamp": "2999-01-01T00:00:00Z"})
    access = load_config(kubeconfig(tmp_path, user))
    assert access.authorization == "Bearer made" and access.reload is not None
    access.reload(False)
    assert (tmp_path / "runs").read_text() == "x"
    access.reload(True)
    assert (tmp_path / "runs").read_text() == "xx"


def test_an_expired_token_of_a_plugin_is_made_anew(tmp_path: Path) -> None:
    user = plugin(tmp_path, {"token": "made", "expirationTimestamp": "2001-01-01T00:00:00Z"})
    access = load_config(kubeconfig(tmp_path, user))
    assert access.reload is not None
    access.reload(False)
    assert (tmp_path / "runs").read_text() == "xx"


def test_a_plugin_without_credentials_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"exec: .* gave no credentials"):
        load_config(kubeconfig(tmp_path, plugin(tmp_path, {}, fails=True)))


async def test_a_token_file_is_read_again_when_it_is_time(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    now = [0.0]
    access = load_config(kubeconfig(tmp_path, {"tokenFile": str(token)}))
    access.clock = lambda: now[0]
    access._next_look = 30.0
    assert access.authorization == "Bearer first"
    token.write_text("second\n")
    await access.refresh_when_due()
    assert access._looking is None
    now[0] = 31.0
    await access.refresh_when_due()
    assert access._looking is not None
    await access._looking
    assert access.authorization == "Bearer second"


async def test_credentials_that_cannot_be_refreshed_are_kept_and_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: bool) -> ClusterAccess:
        raise ConfigError("plugin is gone")

    access = ClusterAccess("http://x", authorization="Bearer old", reload=fail)
    access.rejected()
    await access.refresh_when_due()
    assert access.authorization == "Bearer old" and "plugin is gone" in caplog.text


def test_in_a_pod_the_service_account_is_used_and_its_token_read_again(tmp_path: Path) -> None:
    token, ca = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("sa-1\n")
    ca.write_text(_certificate())
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    access = _in_cluster(environ, str(token), str(ca))
    assert access.server == "https://10.0.0.1:443" and access.authorization.lower() == "bearer sa-1"
    token.write_text("sa-2\n")
    assert access.reload is not None and access.reload(True).authorization.lower() == "bearer sa-2"


async def test_connections_are_kept_when_only_the_token_changes_and_renewed_with_the_certificates(tmp_path: Path) -> None:
    token, ca = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("sa-1\n")
    ca.write_text(_certificate())
    access = _in_cluster({"KUBERNETES_SERVICE_HOST": "h", "KUBERNETES_SERVICE_PORT": "1"}, str(token), str(ca))
    first = access.tls
    token.write_text("sa-2\n")
    access.rejected()
    await access.refresh_when_due()
    assert access.tls is first
    ca.write_text(_certificate())
    access.rejected()
    await access.refresh_when_due()
    assert access.tls is not first


def test_in_a_pod_without_a_token_the_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"in-cluster configuration: .*token"):
        _in_cluster({"KUBERNETES_SERVICE_HOST": "h", "KUBERNETES_SERVICE_PORT": "1"}, str(tmp_path / "token"), str(tmp_path / "ca"))


@pytest.mark.parametrize("content", [b"\xff\xfe", b"one\ntwo", b"\x1b[2J"], ids=["no text", "two lines", "a control character"])
async def test_a_token_file_that_was_overwritten_with_rubbish_leaves_the_old_token(tmp_path: Path, content: bytes) -> None:
    token, ca = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("sa-1\n")
    ca.write_text(_certificate())
    access = _in_cluster({"KUBERNETES_SERVICE_HOST": "h", "KUBERNETES_SERVICE_PORT": "1"}, str(token), str(ca))
    token.write_bytes(content)
    access.rejected()
    await access.refresh_when_due()
    assert access.authorization == "bearer sa-1"
    token.write_text("sa-2\n")
    access.rejected()
    await access.refresh_when_due()
    assert access.authorization == "bearer sa-2"


async def test_the_sandboxs_kubeconfig_leads_to_it_over_https() -> None:
    async with Sandbox() as sandbox, ApiClient(load_config(str(sandbox.kubeconfig))) as client:
        assert b"gitVersion" in await client.get("/version")


def _certificate() -> str:
    """Any certificate will do: nobody connects."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    today = datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, today, today + timedelta(days=1))
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()
