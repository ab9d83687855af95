"""The optional webhooks: the API server asks before it stores a profile, and about each new pod where an administrator configured that.

A profile that could not take effect is refused: Kopf parses the review and calls the handler, which checks as `placewright validate` does.
`handlers/podassignment.py` answers about pods. The webhooks are off unless a flag turns them on. A user who manages the
ValidatingWebhookConfiguration otherwise, with cert-manager for one, names no configuration in the flags.

Any client that reaches the port can send a review, and the scheduler's own event loop answers it. So a review is bounded before Kopf sees
it: in bytes (a mebibyte, aiohttp's own bound) and in elements. Kopf would remember each reviewed object by its uid; every review gets
the same uid here, so that nothing is kept.
"""

from __future__ import annotations

import asyncio
import base64
import copy
import datetime as dt
import hashlib
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, cast

import kopf
from aiohttp import web

from placewright.api.decode import DecodeError
from placewright.api.profile import GROUP, PLURAL, VERSION
from placewright.engine.options import AdmissionOptions
from placewright.engine.outofmemory import reported
from placewright.framework.registry import Registry, installed_plugins
from placewright.handlers import podassignment
from placewright.handlers.podassignment import PodAssignment
from placewright.http.accept import CANCELLED_WHEN_GONE, Connection, Port
from placewright.http.certificates import self_signed
from placewright.kube.client import ApiClient
from placewright.kube.errors import ApiError, RetryBackoff, until_answered
from placewright.kube.profiles import apply_webhook
from placewright.plugins.catalog import in_tree
from placewright.profiles.validation import check_object

_logger = logging.getLogger(__name__)

_HANDLER: Final = "profiles"
_REFUSED: Final = 422
#: Bytes of a connection that are read; aiohttp answers 413 to a body of more than a mebibyte.
_LONGEST_REVIEW: Final = 2 * 2**20
#: Seconds between two looks at the certificate's files. cert-manager renews weeks ahead, so a minute is soon enough.
CHECK_SECONDS: Final = 60.0
#: Seconds for a request of the API server. A review may take 2 s in all (`manifests`), also behind a crowd that says nothing.
_REQUEST_SECONDS: Final = 0.75
#: Connections that the kernel queues until they are accepted.
_BACKLOG: Final = 1024
#: Elements, lists and objects in a review's text, counted by commas and closing brackets. A profile with a hundred extenders, before and
#: after its change and with its managed fields, has about fifteen thousand.
_MOST_ELEMENTS: Final = 30_000
#: Characters of an answer, which `kubectl` prints.
_LONGEST_ANSWER: Final = 8000
#: The uid that Kopf sees in every reviewed object.
_REVIEWED_UID: Final = "under-review"


class AdmissionServer(kopf.WebhookServer):
    """Kopf's webhook server on a port of ours, which writes its address into the ValidatingWebhookConfiguration.

    Args:
        options: address, port, certificate folder and the configuration's name. Without a folder the server makes its own certificate.
        client: writes the configuration.
        assignment: answers reviews of new pods; None: such reviews are no path here.
    """

    def __init__(self, options: AdmissionOptions, client: ApiClient, assignment: PodAssignment | None = None) -> None:
        folder = options.certificates
        authority = None if folder is None or not (folder / "ca.crt").exists() else folder / "ca.crt"
        super().__init__(
            addr=options.address,
            port=options.port,
            certfile=None if folder is None else folder / "tls.crt",
            pkeyfile=None if folder is None else folder / "tls.key",
            cafile=authority,
            extra_sans=() if options.service is None else _service_names(*options.service[:2]),
        )
        self._options = options
        self._client = client
        self._assignment = assignment

    async def __call__(self, fn: Any) -> AsyncIterator[Any]:
        """Serve reviews. Yields the client configuration at the start and after each renewal of the certificate's files.

        Args:
            fn: Kopf's function that answers a review.
        """
        while True:
            authority, tls = self._build_ssl()
            async with self._listening(fn, tls) as port:
                url = self._build_url("https", self._get_accessible_addr(self.addr), port, "")
                reached = self._reached({"url": url, "caBundle": base64.b64encode(authority or b"").decode()})
                tasks = [asyncio.create_task(self._announce(reached), name="webhook configuration")]
                if self._assignment is not None:
                    tasks.append(asyncio.create_task(self._assignment.run(), name="profiles of new pods"))
                try:
                    yield reached
                    await self._files_changed()
                finally:
                    for task in tasks:
                        task.cancel()

    @asynccontextmanager
    async def _listening(self, fn: Any, tls: ssl.SSLContext | None) -> AsyncIterator[int]:
        """Listen on a `Port`, which bounds connections as on every port of ours; Kopf's own listening has no bound.

        Yields the port.
        """

        async def serve(request: web.Request) -> web.StreamResponse:
            try:
                await request.read()
                cast(Connection, request.protocol).answer()
                answer: web.StreamResponse = await (self._assign(request) if self._is_of_pod(request) else self._serve(fn, request))
            except web.HTTPException as refused:
                refused.force_close()
                raise
            answer.force_close()  # a connection is for one review
            return answer

        application = web.Application()
        application.add_routes([web.post("/{id:.*}", serve)])
        runner = web.AppRunner(application, handle_signals=False, **CANCELLED_WHEN_GONE)
        await runner.setup()
        server = cast(web.Server, runner.server)
        try:
            family = socket.AF_INET6 if ":" in (self.addr or "") else socket.AF_INET
            listening = socket.create_server((self.addr or "", self.port or 0), family=family, backlog=_BACKLOG, reuse_port=True)
            async with Port(listening, tls, server, _LONGEST_REVIEW, _REQUEST_SECONDS).open():
                yield listening.getsockname()[1]
        finally:
            await runner.cleanup()

    async def _files_changed(self) -> None:
        """Return when the content of a certificate's file has changed; without files never."""
        begun_with = self._content()
        while self._content() == begun_with:  # noqa: ASYNC110 - a file system sends no event
            await asyncio.sleep(CHECK_SECONDS)

    def _content(self) -> bytes:
        digest = hashlib.sha256()
        for file in (self.certfile, self.pkeyfile, self.cafile):
            if file is not None:
                digest.update(Path(file).read_bytes())
        return digest.digest()

    def _is_of_pod(self, request: web.Request) -> bool:
        return self._assignment is not None and request.path.strip("/") == podassignment.HANDLER

    async def _assign(self, request: web.Request) -> web.Response:
        """Answer a review of a new pod.

        Raises:
            web.HTTPRequestEntityTooLarge: the review has too many elements.
            web.HTTPBadRequest: the body is no AdmissionReview of a pod.
        """
        assert self._assignment is not None
        body = await _bounded(request)
        try:
            return web.Response(body=self._assignment.answer(body), content_type="application/json")
        except DecodeError:
            raise web.HTTPBadRequest(reason="not an AdmissionReview of a pod") from None

    @staticmethod
    async def _serve(fn: Any, request: web.Request) -> web.Response:
        """Answer a review by Kopf.

        Raises:
            web.HTTPRequestEntityTooLarge: the review has too many elements.
            web.HTTPBadRequest: the body is no AdmissionReview.
        """
        await _bounded(request)

        async def reviewed(review: dict[str, Any], **about: Any) -> Any:
            for part in ("object", "oldObject"):
                if review["request"].get(part) is not None:
                    review["request"][part]["metadata"]["uid"] = _REVIEWED_UID
            return await fn(review, **about)

        try:
            return await kopf.WebhookServer._serve(cast(Any, reviewed), request)  # noqa: SLF001 - the only way to bound what it reads
        except (LookupError, TypeError, AttributeError, ValueError, RecursionError):
            raise web.HTTPBadRequest(reason="not an AdmissionReview") from None

    def _reached(self, config: Mapping[str, Any]) -> Any:
        service = self._options.service
        if service is None:
            return {**config, "url": f"{str(config['url']).rstrip('/')}/{_HANDLER}"}
        namespace, name, port = service
        rest = {key: value for key, value in config.items() if key != "url"}
        return {**rest, "service": {"namespace": namespace, "name": name, "port": port, "path": f"/{_HANDLER}"}}

    async def _announce(self, config: Mapping[str, Any]) -> None:
        options = self._options
        if not options.configuration:
            return
        try:
            await until_answered(lambda: apply_webhook(self._client, options.configuration, config, options.failure_policy), RetryBackoff())
            _logger.info("profiles are checked before they are stored: ValidatingWebhookConfiguration %s", options.configuration)
        except ApiError as refused:
            _logger.warning(
                "the API server was not told to ask about profiles (ValidatingWebhookConfiguration %s): %s",
                options.configuration, refused,
            )  # fmt: skip

    @staticmethod
    def build_certificate(hostnames: Collection[str], password: str | None = None) -> tuple[bytes, bytes]:
        """Make a self-signed certificate and its key, both in PEM. Kopf's own function needs libraries that are no dependency here.

        Args:
            hostnames: names and addresses that the certificate is for.
            password: password of Kopf's signature; the key is not encrypted.

        Returns:
            The certificate and the key.
        """
        del password
        return self_signed(hostnames, dt.datetime.now(dt.UTC))


async def _bounded(request: web.Request) -> bytes:
    """Read the body of a review; aiohttp keeps it for its next reader.

    Raises:
        web.HTTPRequestEntityTooLarge: the review has too many elements.
    """
    body = await request.read()
    elements = sum(body.count(each) for each in (b",", b"]", b"}"))
    if elements > _MOST_ELEMENTS:
        raise web.HTTPRequestEntityTooLarge(_MOST_ELEMENTS, elements, reason="a review of too many elements")
    return body


def registry_with_admission() -> kopf.OperatorRegistry:
    """Return a copy of the default registry with the handler of reviews.

    That handler is in no default registry: Kopf refuses to start with it where no webhook server is configured.
    """
    catalogue = in_tree().with_installed(installed_plugins())
    registry = copy.deepcopy(kopf.get_default_registry())

    async def review(body: kopf.Body, old: kopf.Body | None, **_: Any) -> None:
        """Refuse a profile that could not take effect."""
        with reported():
            answer_review(body, old, catalogue)

    declare = kopf.on.validate(GROUP, VERSION, PLURAL, id=_HANDLER, operations=["CREATE", "UPDATE"], registry=registry)
    declare(cast(Any, review))
    return registry


def answer_review(new: Mapping[str, Any], old: Mapping[str, Any] | None, catalogue: Registry) -> None:
    """Check a profile that is to be stored.

    Args:
        new: the object as it would be stored.
        old: the stored object; None at its creation.
        catalogue: the plugins that a profile may name.

    Raises:
        kopf.AdmissionError: the profile could not take effect; the message lists the problems in one line.
    """
    problems = check_object(dict(new), None if old is None else dict(old), catalogue)
    if problems:
        said = "; ".join(str(problem) for problem in problems)
        raise kopf.AdmissionError(said if len(said) <= _LONGEST_ANSWER else f"{said[:_LONGEST_ANSWER]}...", code=_REFUSED)


def _service_names(namespace: str, name: str) -> tuple[str, ...]:
    return f"{name}.{namespace}.svc", f"{name}.{namespace}.svc.cluster.local", f"{name}.{namespace}", name
