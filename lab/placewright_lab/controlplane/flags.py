"""The command lines of etcd and kube-apiserver, for every version from 1.20 on, and the files in them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from kubesandbox.auth.credentials import Credentials, make_credentials, write_private

#: Admission plugins whose work needs a controller afterwards: a token in each namespace, and the removal of the not-ready taint.
#: envtest leaves the first out as well.
_NEEDS_CONTROLLERS: Final = ("ServiceAccount", "TaintNodesByCondition")
#: The first version without the flag for plain HTTP. Older ones need the flag to turn it off.
_NO_PLAIN_HTTP: Final = 24
#: Audit policy. Bindings have their requests, for "exactly once", and so have writes of Leases, for the lead's history.
_AUDIT_POLICY: Final = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Request
  resources: [{group: "", resources: [pods/binding]}, {group: coordination.k8s.io, resources: [leases]}]
- level: Metadata
"""


@dataclass(frozen=True, slots=True)
class Ports:
    """Loopback ports of the API server, of etcd's clients, and of etcd's peers, though there are no peers."""

    api_server: int
    etcd: int
    peers: int


@dataclass(frozen=True, slots=True)
class Keys:
    """Files of one run. One certificate serves both servers, and the API server as etcd's client."""

    credentials: Credentials
    authority: Path
    certificate: Path
    key: Path
    service_accounts: Path
    tokens: Path
    audit_policy: Path

    @classmethod
    def make(cls, folder: Path) -> Self:
        """Make new files, in a folder that only we can read."""
        credentials = make_credentials()
        keys = cls(
            credentials,
            folder / "ca.crt",
            folder / "server.crt",
            folder / "server.key",
            folder / "service-accounts.key",
            folder / "tokens.csv",
            folder / "audit-policy.yaml",
        )
        write_private(keys.authority, credentials.ca)
        write_private(keys.certificate, credentials.certificate)
        write_private(keys.key, credentials.key)
        write_private(keys.service_accounts, _signing_key())
        write_private(keys.tokens, f'{credentials.token},admin,admin,"system:masters"\n'.encode())
        write_private(keys.audit_policy, _AUDIT_POLICY.encode())
        return keys


def etcd_flags(folder: Path, ports: Ports, keys: Keys) -> list[str]:
    """Return the flags of an etcd with client certificates. It does not wait for the disk, because its content is temporary."""
    client, peer = f"https://127.0.0.1:{ports.etcd}", f"https://127.0.0.1:{ports.peers}"
    return [
        "--name=placewright",
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=placewright={peer}",
        "--client-cert-auth",
        f"--trusted-ca-file={keys.authority}",
        f"--cert-file={keys.certificate}",
        f"--key-file={keys.key}",
        "--peer-client-cert-auth",
        f"--peer-trusted-ca-file={keys.authority}",
        f"--peer-cert-file={keys.certificate}",
        f"--peer-key-file={keys.key}",
        "--unsafe-no-fsync",
    ]


@dataclass(frozen=True, slots=True)
class Features:
    """Features of a control plane beyond its version's defaults.

    Attributes:
        gates: value of `--feature-gates` of every program.
        apis: value of `--runtime-config`.
        controllers: True for admission plugins that need a controller manager.
        unadmitted: further admission plugins that are off.
    """

    gates: str = ""
    apis: str = ""
    controllers: bool = False
    unadmitted: tuple[str, ...] = ()


PLAIN: Final = Features()


def api_server_flags(minor: int, ports: Ports, keys: Keys, audit_log: Path | None, features: Features = PLAIN) -> list[str]:
    """Return the flags of a kube-apiserver of version 1.`minor`."""
    flags = [
        f"--etcd-servers=https://127.0.0.1:{ports.etcd}",
        f"--etcd-cafile={keys.authority}",
        f"--etcd-certfile={keys.certificate}",
        f"--etcd-keyfile={keys.key}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",
        f"--secure-port={ports.api_server}",
        f"--tls-cert-file={keys.certificate}",
        f"--tls-private-key-file={keys.key}",
        f"--token-auth-file={keys.tokens}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={keys.service_accounts}",
        f"--service-account-signing-key-file={keys.service_accounts}",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--allow-privileged=true",
        *gates_flag(features.gates),
    ]
    if features.apis:
        flags.append(f"--runtime-config={features.apis}")
    unadmitted = (*(() if features.controllers else _NEEDS_CONTROLLERS), *features.unadmitted)
    if unadmitted:
        flags.append(f"--disable-admission-plugins={','.join(unadmitted)}")
    if minor < _NO_PLAIN_HTTP:
        flags.append("--insecure-port=0")
    if audit_log is not None:
        flags += [f"--audit-log-path={audit_log}", f"--audit-policy-file={keys.audit_policy}", "--audit-log-format=json"]
    return flags


def client_flags(folder: Path, port: int, *, plain_http: bool) -> list[str]:
    """Return the flags that a scheduler and a controller manager share: one loopback port, and no questions about who asks there.

    Args:
        folder: folder for its certificate.
        port: a free port.
        plain_http: True for a version that would also serve plain HTTP.
    """
    served = ["--bind-address=127.0.0.1", f"--secure-port={port}", f"--cert-dir={folder}", "--authentication-skip-lookup"]
    return [*served, *(["--port=0"] if plain_http else [])]


def gates_flag(gates: str) -> list[str]:
    """Return any program's flag for feature gates, or nothing without gates."""
    return [f"--feature-gates={gates}"] if gates else []


def _signing_key() -> bytes:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
