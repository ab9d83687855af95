"""Access to the endpoints, judged by the API server: TokenReview names a token's user, SubjectAccessReview their rights, as upstream.

Any error refuses the request. Answers are kept for a few seconds, because otherwise each scrape costs two requests; also while the API
server is away. Requests wait for answers in the lanes of `reviewlanes`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

from placewright.api.decode import DecodeError
from placewright.http.routes import Audience, Endpoint, Question, RequestRefused
from placewright.kube.client import ApiClient
from placewright.kube.errors import RequestError
from placewright.serving.fairroom import ip_of
from placewright.serving.reviewlanes import Judgments, ReviewLanes
from placewright.serving.reviews import AskedRight, Reviews, User

_log = logging.getLogger(__name__)

_UNHEARD: Final = "the API server does not say %s, so requests for metrics and debug pages are refused: %s"

_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403
_INTERNAL_ERROR: Final = 500


class AskingTheApiServer:
    """The gate that has the API server judge."""

    def __init__(self, client: ApiClient, clock: Callable[[], float] = time.monotonic, lanes: ReviewLanes | None = None) -> None:
        """Keep no answers yet.

        Args:
            client: its own, so that unknown clients cannot use up the scheduler's requests.
            clock: seconds, monotonic.
            lanes: the lanes, as for `Judgments`.
        """
        self._judgments = Judgments(Reviews(client), lanes, clock)

    async def admit(self, endpoint: Endpoint, question: Question) -> None:
        """Return where the user of the request's token may `get` the path.

        Args:
            endpoint: that serves the path.
            question: the request.

        Raises:
            RequestRefused: 401 for a bad token, 403 without the right, 503 for too many requests, 500 without an answer.
        """
        if endpoint.audience in (Audience.EVERYBODY, Audience.ITS_OWN):
            return
        if endpoint.audience is Audience.LOOPBACK and not is_loopback(question.peer):
            why = f'forbidden: path "{question.path}" is for this machine alone, such as through kubectl port-forward'
            raise RequestRefused(_FORBIDDEN, why)
        user = await self._user(question)
        if not await self._may(user, question):
            raise RequestRefused(_FORBIDDEN, f'forbidden: User "{user.username}" cannot get path "{question.path}"')

    async def _user(self, question: Question) -> User:
        try:
            user = await self._judgments.user_of(question)
        except (RequestError, DecodeError) as problem:
            _log.warning(_UNHEARD, "whose a token is", problem)
            raise RequestRefused(_UNAUTHORIZED, "Unauthorized") from None
        if user is None:
            raise RequestRefused(_UNAUTHORIZED, "Unauthorized")
        return user

    async def _may(self, user: User, question: Question) -> bool:
        try:
            return await self._judgments.may(user, AskedRight("get", path=question.path), question)
        except (RequestError, DecodeError) as problem:
            _log.warning(_UNHEARD, "what a user may do", problem)
            raise RequestRefused(_INTERNAL_ERROR, f'Internal Server Error: "{question.path}"') from None


def is_loopback(address: str) -> bool:
    """Whether an IP address is this machine's own; also as an IPv6 socket spells an IPv4 one."""
    found = ip_of(address)
    return found is not None and found.is_loopback
