"""The server under test, and what may be asked of it beyond the Kubernetes API."""

from __future__ import annotations

import asyncio
import base64
import secrets
import ssl
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from contract.client import DEADLINE, Client, Object
from programs import not_on_this_server


def _nothing() -> None:
    return


@dataclass(frozen=True)
class Server:
    """A client, and the server's powers beyond the Kubernetes API.

    Attributes:
        minor: minor version of the server.
        compact: function that makes the server forget its history, so that old versions get 410; None if there is no such way.
        provoke_bookmarks: function that hurries bookmarks along if it can.
        real: False for the sandbox.
        tells_progress: False with an etcd that cannot report its progress (before 3.4.31 and 3.5.13); then an API server streams no lists.
    """

    client: Client
    minor: int
    compact: Callable[[], None] | None = None
    provoke_bookmarks: Callable[[], None] = _nothing
    real: bool = True
    tells_progress: bool = True


@dataclass(frozen=True)
class Cluster(Server):
    """The server, and a namespace of the test's own."""

    namespace: str = ""

    def path(self, plural: str, *rest: str, group: str = "", version: str = "v1") -> str:
        """Return the path of a namespaced collection, or of an object in it."""
        root = f"/apis/{group}/{version}" if group else f"/api/{version}"
        return "/".join([root, "namespaces", self.namespace, plural, *rest])

    def needs(self, minor: int, what: str) -> None:
        """Skip the test on servers older than 1.`minor`."""
        if self.minor < minor:
            not_on_this_server(f"{what} came with Kubernetes 1.{minor}, and it is 1.{self.minor}")

    async def create(self, plural: str, body: Object, **place: str) -> Object:
        """Create an object in the test's namespace."""
        return (await self.client.post(self.path(plural, **place), body)).expect(201)

    async def refusal(self, path: str, body: Object) -> str:
        """Post an invalid object. Return the message of its refusal."""
        answer = await self.client.post(path, body)
        if answer.status == 201:
            await self.client.delete(f"{path}/{body['metadata']['name']}")
        return answer.refused(422, "Invalid")

    async def read(self, plural: str, name: str, **place: str) -> Object:
        """Read an object in the test's namespace."""
        return (await self.client.get(self.path(plural, name, **place))).expect(200)

    async def eventually(self, check: Callable[[Object], Any], path: str, accept: tuple[int, ...] = (200,)) -> Object:
        """Read `path` until `check` holds for the answer. Fail at the deadline with the last one."""
        body: Object = {}
        try:
            async with asyncio.timeout(DEADLINE):
                while True:
                    answer = await self.client.get(path)
                    body = answer.body
                    if answer.status in accept and check(body):
                        return body
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"not in time: {body}") from None

    def unique(self, name: str) -> str:
        """Return a name for an object outside the namespace."""
        return f"{name}-{self.namespace.rpartition('-')[2]}"


def client_from(kubeconfig: Path) -> Client:
    """Return a client for the current context of a kubeconfig: token or client certificate."""
    content = yaml.safe_load(kubeconfig.read_text())
    named = next(each["context"] for each in content["contexts"] if each["name"] == content["current-context"])
    cluster = next(each["cluster"] for each in content["clusters"] if each["name"] == named["cluster"])
    user = next(each["user"] for each in content["users"] if each["name"] == named["user"])
    authority = _bytes(cluster, "certificate-authority", kubeconfig)
    context = ssl.create_default_context(cadata=authority.decode() if authority else None)
    if cluster.get("insecure-skip-tls-verify"):
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    certificate, key = (_bytes(user, each, kubeconfig) for each in ("client-certificate", "client-key"))
    if certificate and key:
        with tempfile.TemporaryDirectory() as folder:
            chain = Path(folder, "client.pem")
            chain.touch(mode=0o600)
            chain.write_bytes(certificate + b"\n" + key)
            context.load_cert_chain(chain)
    return Client(cluster["server"], context, user.get("token", ""))


def _bytes(source: Object, name: str, kubeconfig: Path) -> bytes:
    if f"{name}-data" in source:
        return base64.b64decode(source[f"{name}-data"])
    return kubeconfig.parent.joinpath(source[name]).read_bytes() if name in source else b""


@asynccontextmanager
async def within_namespace(server: Server) -> AsyncIterator[Cluster]:
    """Yield the server with a namespace for one test, which is deleted afterwards."""
    namespace, client = f"contract-{secrets.token_hex(4)}", server.client
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    (await client.post("/api/v1/namespaces", body)).expect(201)
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    (await client.post(f"/api/v1/namespaces/{namespace}/serviceaccounts", account)).expect(201, 409)
    try:
        yield Cluster(**vars(server), namespace=namespace)
    finally:
        pods = f"/api/v1/namespaces/{namespace}/pods"
        await client.delete(pods, {"gracePeriodSeconds": 0})
        await client.delete(f"/api/v1/namespaces/{namespace}")
