"""Questions that the API server answers about clients: whose a token is (TokenReview), and what they may do (SubjectAccessReview)."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from placewright.api.decode import decode
from placewright.kube.client import ApiClient

TOKEN_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105 - a path
ACCESS_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_ACCOUNT: Final = "system:serviceaccount:"


class User(msgspec.Struct, frozen=True):
    """A user as the API server knows them: the `user` of a TokenReview."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}

    @property
    def known_by(self) -> tuple[Hashable, ...]:
        """A key that is equal for users whom an authorizer cannot tell apart."""
        return self.username, self.uid, self.groups, tuple(sorted(self.extra.items()))

    @property
    def party(self) -> str:
        """The party that shares bounded places: the user, or all service accounts of a namespace, because one person makes them."""
        return f"{_ACCOUNT}{self.account_namespace}:*" if self.account_namespace else self.username

    @property
    def account_namespace(self) -> str:
        """The namespace of a service account; empty for any other user."""
        if not self.username.startswith(_ACCOUNT):
            return ""
        return self.username.removeprefix(_ACCOUNT).rpartition(":")[0]


#: The user of a request without a token. A cluster may grant it rights; few do.
ANONYMOUS: Final = User("system:anonymous", groups=("system:unauthenticated",))


@dataclass(frozen=True, slots=True)
class AskedRight:
    """A right that a user may have.

    Attributes:
        verb: such as `get`.
        path: a nonResourceURL; empty for a resource.
        resource: resource of the core group; empty for a path.
        namespace: namespace of the resource; empty for all namespaces.
    """

    verb: str
    path: str = ""
    resource: str = ""
    namespace: str = ""

    def attributes(self) -> dict[str, dict[str, str]]:
        """Return the right as the spec of a SubjectAccessReview has it."""
        if self.path:
            return {"nonResourceAttributes": {"path": self.path, "verb": self.verb}}
        named = {"namespace": self.namespace} if self.namespace else {}
        return {"resourceAttributes": {"verb": self.verb, "group": "", "resource": self.resource, **named}}


class _Status(msgspec.Struct):
    authenticated: bool = False
    user: User = User()
    allowed: bool = False
    denied: bool = False


class _Review(msgspec.Struct):
    """The answer to a TokenReview or a SubjectAccessReview."""

    status: _Status = msgspec.field(default_factory=_Status)


class Reviews:
    """Asks the API server. Each question is a request; nothing is kept."""

    def __init__(self, client: ApiClient) -> None:
        """Ask nothing yet.

        Args:
            client: its own, with a rate of its own, so that unknown clients cannot use up the scheduler's requests.
        """
        self._client = client

    async def user_of(self, token: str) -> User | None:
        """Ask whose a token is.

        Args:
            token: a bearer token.

        Returns:
            None for a token that is not valid.

        Raises:
            RequestError: the API server does not answer.
            DecodeError: its answer is none.
        """
        if not token.isascii():  # by RFC 6750, section 2.1; bytes of a header that are no UTF-8 could not be sent on as JSON
            return None
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        status = decode(await self._client.post(TOKEN_REVIEWS, asked), _Review).status
        return status.user if status.authenticated and status.user.username else None

    async def allows(self, user: User, wanted: AskedRight) -> bool:
        """Ask whether a user has a right.

        Args:
            user: the user, as a TokenReview named them.
            wanted: the right.

        Returns:
            Whether the API server allows it.

        Raises:
            RequestError: the API server does not answer.
            DecodeError: its answer is none.
        """
        who: dict[str, Any] = {"user": user.username, "uid": user.uid, "groups": user.groups, "extra": user.extra}
        spec = {**{name: value for name, value in who.items() if value}, **wanted.attributes()}
        asked = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        status = decode(await self._client.post(ACCESS_REVIEWS, asked), _Review).status
        return status.allowed and not status.denied
