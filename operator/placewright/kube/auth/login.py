"""Finds the API server and our credentials, as the official client's configuration names them, and keeps the credentials fresh.

The official `kubernetes` client reads everything that kubectl understands: contexts, several files in `KUBECONFIG`, tokens, exec plugins,
client certificates, service accounts in a cluster. This module turns the result into the arguments of an aiohttp request, and reads it
again: tokens expire, and token files are replaced while we run.

It checks a kubeconfig before the official client reads it: that client's messages do not always name the file or the field.

A value in the wrong place is never quoted: it may be a token.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml
from kubernetes.client import Configuration
from kubernetes.config import ConfigException
from kubernetes.config.incluster_config import (
    SERVICE_CERT_FILENAME,
    SERVICE_HOST_ENV_NAME,
    SERVICE_TOKEN_FILENAME,
    InClusterConfigLoader,
)
from kubernetes.config.kube_config import KubeConfigLoader, KubeConfigMerger
from yarl import URL

from placewright.api.bad_input import shown
from placewright.api.yamldocs import only_document
from placewright.kube.auth.proxies import proxy_for
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


#: Seconds between two looks at credentials that can change.
REFRESH_SECONDS: Final = 30.0
DEFAULT_KUBECONFIG: Final = "~/.kube/config"
#: Seconds before its expiry at which an exec plugin's credential is replaced; the official client has the same margin.
_EXPIRY_MARGIN: Final = 300.0
#: Seconds that a request after a 401 waits for fresh credentials: an exec plugin that hangs must not delay every request for ever.
_LONGEST_LOOK: Final = 30.0

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class ClusterAccess:
    """Address, TLS and credentials of the API server: a request needs no more.

    Attributes:
        server: base URL.
        tls: context for HTTPS; True if the scheme is HTTP.
        tls_material: fingerprint of the certificates and keys behind `tls`.
        proxy: URL of an HTTP proxy, or None.
        tls_server_name: name expected in the server's certificate when it is not the host's.
        authorization: value of the Authorization header, or empty.
        source: origin of the configuration, for messages: a file, or "in-cluster".
        context: kubeconfig context, empty in a cluster.
        reload: reads the credentials again and returns a fresh access; None when they cannot change. Runs in a thread.
        clock: monotonic seconds.
    """

    server: str
    tls: ssl.SSLContext | bool = True
    tls_material: bytes = b""
    proxy: str | None = None
    tls_server_name: str | None = None
    authorization: str = ""
    source: str = ""
    context: str = ""
    reload: Callable[[bool], ClusterAccess] | None = None
    clock: Callable[[], float] = time.monotonic
    _next_look: float = field(default=0.0, repr=False)
    _rejected: bool = field(default=False, repr=False)
    _looking: asyncio.Task[None] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self._next_look = self.clock() + REFRESH_SECONDS

    def rejected(self) -> None:
        """Note an answer 401: the next request waits for fresh credentials."""
        self._rejected = self.reload is not None

    async def refresh_when_due(self) -> None:
        """Read the credentials again when 30 seconds have passed. Only after a 401 the caller waits for the result."""
        if self.reload is None or (self.clock() < self._next_look and not self._rejected):
            return
        if self._looking is None or self._looking.done():
            self._next_look = self.clock() + REFRESH_SECONDS
            self._looking = asyncio.create_task(self._refresh(self.reload, self._rejected))
        if self._rejected:
            await asyncio.wait([self._looking], timeout=_LONGEST_LOOK)

    async def _refresh(self, reload: Callable[[bool], ClusterAccess], forced: bool) -> None:
        try:
            fresh = await asyncio.to_thread(reload, forced)
        except ConfigError as error:
            _log.warning("credentials could not be refreshed, the old ones stay in use: %s", error)
        else:
            self.authorization = fresh.authorization
            # A new TLS context costs a handshake for each connection, so it is kept while the material is the same.
            if fresh.tls_material != self.tls_material:
                self.tls, self.tls_material = fresh.tls, fresh.tls_material
        finally:
            self._rejected = False


def load_config(kubeconfig: str | None = None, context: str | None = None, environ: Mapping[str, str] = os.environ) -> ClusterAccess:
    """Find the cluster: the file named, else `KUBECONFIG`, else `~/.kube/config`, else the pod's service account.

    An exec plugin that the file names is run.

    Args:
        kubeconfig: a file, or several joined as in `KUBECONFIG`; None for the environment's.
        context: name of a context; None for the files' current one.
        environ: the environment.

    Raises:
        ConfigError: no configuration leads to a cluster; the message is one line with the file, the field and the allowed values.
    """
    named = kubeconfig or environ.get("KUBECONFIG", "")
    paths = _existing(named or DEFAULT_KUBECONFIG)
    if paths:
        access = _from_kubeconfig(read_kubeconfig(paths, context))
        _warn_of_risks(access)
        return access
    if named:
        raise ConfigError(f"kubeconfig {named}: no such file; name one with --kubeconfig or KUBECONFIG")
    if environ.get(SERVICE_HOST_ENV_NAME):
        return _in_cluster(environ)
    raise ConfigError(
        f"no cluster configured: {DEFAULT_KUBECONFIG} does not exist and this is no pod; name a file with --kubeconfig or KUBECONFIG"
    )


def _warn_of_risks(access: ClusterAccess) -> None:
    """Log the risks of a configuration that a person asked for and may have forgotten."""
    if isinstance(access.tls, ssl.SSLContext) and access.tls.verify_mode == ssl.CERT_NONE:
        _log.warning("%s: the certificate of %s is not verified (insecure-skip-tls-verify)", access.source, access.server)
    if access.authorization and not access.server.startswith("https://"):
        _log.warning("%s: credentials go to %s without encryption", access.source, access.server)


def _existing(paths: str) -> list[str]:
    return [str(path) for part in paths.split(os.pathsep) if part and (path := Path(part).expanduser()).exists()]


def _in_cluster(
    environ: Mapping[str, str], token_file: str = SERVICE_TOKEN_FILENAME, ca_file: str = SERVICE_CERT_FILENAME
) -> ClusterAccess:
    loader = InClusterConfigLoader(  # type: ignore[no-untyped-call]
        token_filename=token_file, cert_filename=ca_file, environ=dict(environ)
    )

    def read() -> ClusterAccess:
        try:
            return _access(_configured(loader), "in-cluster")
        except (ConfigException, OSError, ValueError) as error:  # a ValueError: bytes that are no text
            raise ConfigError(f"in-cluster configuration: {_one_line(error)}; a pod with a service account has {token_file}") from None

    access = read()
    # The CA bundle is replaced beside the token, so both are read again.
    access.reload = lambda _forced: read()
    return access


def _from_kubeconfig(file: Kubeconfig) -> ClusterAccess:
    def read() -> tuple[ClusterAccess, KubeConfigLoader]:
        try:
            merged = KubeConfigMerger(file.paths)  # type: ignore[no-untyped-call]
            loader = KubeConfigLoader(  # type: ignore[no-untyped-call]
                config_dict=merged.config, active_context=file.context, config_base_path=None
            )
            access = _access(_configured(loader), file.paths)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001
            # For values of a wrong shape the official client lets TypeError, KeyError, binascii.Error, SSLError and more escape.
            raise ConfigError(f"kubeconfig {file.paths}: context {file.context}: {_one_line(error)}") from None
        if "exec" in file.user and not access.authorization and not loader.__dict__.get("cert_file"):
            raise ConfigError(f"kubeconfig {file.paths}: {_no_credentials(file.user['exec'])}")
        access.context = file.context
        return access, loader

    access, loader = first, _ = read()

    def reload(forced: bool) -> ClusterAccess:
        """Read a token file always, a plugin's credential when it is about to expire or was refused."""
        nonlocal access, loader
        # The official client's own hook does not cover certificates that a plugin gave.
        expiry = loader.__dict__.get("expiry")
        if forced or "tokenFile" in file.user or (expiry is not None and expiry.timestamp() - _EXPIRY_MARGIN <= time.time()):
            access, loader = read()
        return access

    if file.user.keys() & {"exec", "tokenFile", "auth-provider"}:
        first.reload = reload
    return first


def _no_credentials(plugin: Any) -> str:
    command = plugin.get("command") if isinstance(plugin, dict) else plugin
    return f"users[].user.exec: {command!r} gave no credentials; it must print an ExecCredential with a token or a client certificate"


def _configured(loader: InClusterConfigLoader | KubeConfigLoader) -> Configuration:
    configuration = Configuration()
    # The official client takes a proxy from the environment for every address, also for those in NO_PROXY.
    configuration.proxy = None
    loader.load_and_set(configuration)  # type: ignore[no-untyped-call]
    return configuration


def _access(configuration: Configuration, source: str) -> ClusterAccess:
    server = str(configuration.host)
    return ClusterAccess(
        server=server,
        tls=_tls(configuration) if server.startswith("https://") else True,
        tls_material=_tls_material(configuration),
        proxy=configuration.proxy or proxy_for(URL(server), os.environ),
        tls_server_name=configuration.tls_server_name or None,
        authorization=_authorization(configuration),
        source=source,
    )


def _authorization(configuration: Configuration) -> str:
    # The official client keeps the trailing newline of a token file, which no header may carry.
    found = str(configuration.api_key.get("BearerToken", "")).strip()
    if not (found.isascii() and found.isprintable()):
        raise ConfigException("the token has characters that no header may carry")
    return found


def _tls(configuration: Configuration) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert or None)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file or None)
    return context


def _tls_material(configuration: Configuration) -> bytes:
    digest = hashlib.sha256()
    for path in (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file):
        content = Path(path).read_bytes() if path else b""
        digest.update(len(content).to_bytes(8) + content)
    return digest.digest()


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text or type(error).__name__
