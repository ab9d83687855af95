"""Who we are and where the API server is, as the official client's configuration says.

Everything kubectl understands is read by the official `kubernetes` client: contexts, several files in `KUBECONFIG`, tokens, exec plugins,
client certificates, in-cluster service accounts. This module turns the outcome into what an aiohttp request needs, and keeps it fresh:
tokens expire, and token files are replaced under us.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

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

from placewright.kube.errors import ConfigError

#: How often credentials that can change are looked at, seconds.
REFRESH_SECONDS: Final = 30.0
DEFAULT_KUBECONFIG: Final = "~/.kube/config"

_log = logging.getLogger(__name__)


class Loader(Protocol):
    """The official client's loaders: they fill a `Configuration`, and fill it again when asked."""

    def load_and_set(self, client_configuration: Configuration) -> None:
        """Read files, run plugins, set host, certificates and tokens."""


@dataclass(slots=True)
class ClusterAccess:
    """Everything a request needs to reach the API server and be let in.

    Attributes:
        server: base URL.
        tls: context for HTTPS; True where the scheme is HTTP.
        proxy: URL of an HTTP proxy, or None.
        tls_server_name: name expected in the server's certificate when it is not the host's.
        authorization: value of the Authorization header, or empty.
        source: where this came from, for messages: a file, or "in-cluster".
        context: kubeconfig context, empty in a cluster.
        reload: reads the credentials again and returns a fresh access; None when they cannot change. Runs in a thread.
        clock: monotonic seconds.
    """

    server: str
    tls: ssl.SSLContext | bool = True
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
        """The server answered 401: the next request waits for fresh credentials."""
        self._rejected = self.reload is not None

    async def refresh_when_due(self) -> None:
        """Look at the credentials' source when it is time; wait for it only after a 401."""
        if self.reload is None or (self.clock() < self._next_look and not self._rejected):
            return
        if self._looking is None or self._looking.done():
            self._next_look = self.clock() + REFRESH_SECONDS
            self._looking = asyncio.create_task(self._refresh(self.reload, self._rejected))
        if self._rejected:
            await asyncio.shield(self._looking)

    async def _refresh(self, reload: Callable[[bool], ClusterAccess], forced: bool) -> None:
        try:
            fresh = await asyncio.to_thread(reload, forced)
        except ConfigError as error:
            _log.warning("credentials could not be refreshed, keeping the old ones: %s", error)
        else:
            self.authorization, self.tls = fresh.authorization, fresh.tls
        finally:
            self._rejected = False


def load_config(
    kubeconfig: str | None = None, context: str | None = None, environ: Mapping[str, str] = os.environ
) -> ClusterAccess:
    """Find the cluster: the file named, else `KUBECONFIG`, else `~/.kube/config`, else the pod's service account.

    Raises `ConfigError` with one line. An exec plugin named by the file is run.
    """
    named = kubeconfig or environ.get("KUBECONFIG", "")
    paths = _existing(named or DEFAULT_KUBECONFIG)
    if paths:
        return _from_kubeconfig(os.pathsep.join(paths), context)
    if named:
        raise ConfigError(f"kubeconfig {named}: no such file; name one with --kubeconfig or KUBECONFIG")
    if environ.get(SERVICE_HOST_ENV_NAME):
        return _in_cluster(environ)
    raise ConfigError(
        f"no cluster configured: {DEFAULT_KUBECONFIG} does not exist and this is no pod; name a file with --kubeconfig or KUBECONFIG"
    )


def _existing(paths: str) -> list[str]:
    return [path for part in paths.split(os.pathsep) if part and (path := os.path.expanduser(part)) and Path(path).exists()]


def _in_cluster(
    environ: Mapping[str, str], token_file: str = SERVICE_TOKEN_FILENAME, ca_file: str = SERVICE_CERT_FILENAME
) -> ClusterAccess:
    loader = InClusterConfigLoader(  # type: ignore[no-untyped-call]
        token_filename=token_file, cert_filename=ca_file, environ=dict(environ))

    def read() -> ClusterAccess:
        try:
            return _access(_configured(loader), "in-cluster")
        except (ConfigException, OSError) as error:
            raise ConfigError(f"in-cluster configuration: {_one_line(error)}; a pod with a service account has {token_file}") from None

    access = read()
    # The CA bundle is replaced beside the token, so both are read again.
    access.reload = lambda _forced: read()
    return access


def _from_kubeconfig(paths: str, context: str | None) -> ClusterAccess:
    merged, user = _parsed(paths, context)
    exec_plugin = isinstance(user.get("exec"), dict)

    def read() -> tuple[ClusterAccess, KubeConfigLoader]:
        try:
            loader = KubeConfigLoader(  # type: ignore[no-untyped-call]
                config_dict=merged.config, active_context=context, config_base_path=None
            )
            access = _access(_configured(loader), paths)
            access.context = str(loader.current_context["name"])
        except Exception as error:  # noqa: BLE001
            # The official client lets TypeError, KeyError, binascii.Error and more escape for files of the wrong shape.
            raise ConfigError(f"kubeconfig {paths}: {_one_line(error)}") from None
        if exec_plugin and not access.authorization and not loader.__dict__.get("cert_file"):
            raise ConfigError(
                f"kubeconfig {paths}: users[].user.exec: {user['exec'].get('command')!r} gave no credentials; "
                "it must print an ExecCredential with a token or a client certificate"
            )
        return access, loader

    access, loader = read()
    if exec_plugin or "tokenFile" in user or "auth-provider" in user:
        access.reload = _KubeconfigReload(access, loader, read, token_file="tokenFile" in user)
    return access


@dataclass(slots=True)
class _KubeconfigReload:
    """Reads again what can have changed: a token file always, a plugin's credential when it is about to expire or was refused."""

    access: ClusterAccess
    loader: KubeConfigLoader
    read: Callable[[], tuple[ClusterAccess, KubeConfigLoader]]
    token_file: bool

    def __call__(self, forced: bool) -> ClusterAccess:
        if forced or self.token_file or self._expired():
            self.access, self.loader = self.read()
        return self.access

    def _expired(self) -> bool:
        # The same margin as the official client's own hook, which does not cover certificates that a plugin gave.
        expiry = self.loader.__dict__.get("expiry")
        return expiry is not None and expiry.timestamp() - _EXPIRY_MARGIN <= time.time()


_EXPIRY_MARGIN: Final = 300.0


def _parsed(paths: str, context: str | None) -> tuple[KubeConfigMerger, dict[str, Any]]:
    """The merged files, and the user entry of the context; raises `ConfigError` for what is no kubeconfig."""
    try:
        merged = KubeConfigMerger(paths)  # type: ignore[no-untyped-call]
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"kubeconfig {paths}: not YAML: {_one_line(error)}") from None
    except Exception as error:  # noqa: BLE001
        raise ConfigError(f"kubeconfig {paths}: {_one_line(error)}; a kubeconfig is a mapping of kind Config") from None
    config = merged.config.value if merged.config is not None else None
    if not isinstance(config, dict):
        raise ConfigError(f"kubeconfig {paths}: found {type(config).__name__}; a kubeconfig is a mapping of kind Config")
    for section in ("clusters", "contexts"):
        if not isinstance(config.get(section), list) or not config[section]:
            raise ConfigError(f"kubeconfig {paths}: {section}: found {config.get(section)!r}; a list with at least one entry is needed")
    chosen = str(context or config.get("current-context") or "")
    entries = _by_name(config["contexts"])
    if chosen not in entries:
        where = "--context" if context else "current-context"
        raise ConfigError(f"kubeconfig {paths}: {where}: found {chosen!r}; allowed: {', '.join(sorted(entries))}")
    user_name = (entries[chosen].get("context") or {}).get("user") or ""
    users = _by_name(config.get("users"))
    if user_name and user_name not in users:
        raise ConfigError(f"kubeconfig {paths}: users: no entry named {user_name!r}, which context {chosen!r} uses")
    return merged, users.get(user_name, {}).get("user") or {}


def _by_name(entries: Any) -> dict[str, dict[str, Any]]:
    # The merger wraps each entry, to remember its file.
    plain = [getattr(entry, "value", entry) for entry in entries or ()]
    return {str(entry.get("name")): entry for entry in plain if isinstance(entry, dict)}


def _configured(loader: Loader) -> Configuration:
    configuration = Configuration()
    loader.load_and_set(configuration)
    return configuration


def _access(configuration: Configuration, source: str) -> ClusterAccess:
    server = str(configuration.host)
    if not server.startswith(("http://", "https://")):
        raise ConfigException(f"clusters[].cluster.server: found {server!r}; a URL with http:// or https:// is needed")
    return ClusterAccess(
        server=server,
        tls=_tls(configuration) if server.startswith("https://") else True,
        proxy=configuration.proxy or None,
        tls_server_name=configuration.tls_server_name or None,
        authorization=_authorization(configuration),
        source=source,
    )


def _authorization(configuration: Configuration) -> str:
    # The official client keeps the trailing newline of a token file, which no header may carry.
    return str(configuration.api_key.get("BearerToken", "")).strip()


def _tls(configuration: Configuration) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert or None)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file or None)
    return context


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text or type(error).__name__
