"""Impersonation: the headers `Impersonate-User` and `Impersonate-Group`, and the rights that they need.

Since Kubernetes 1.36 there are two ways. Constrained impersonation needs two rights together. One is for this request as a user of that
kind (`impersonate-on:user-info:list` on pods). The other is for that user (`impersonate:user-info`). Legacy impersonation needs the one
right to `impersonate`, for any request. The refusal of a user with neither is in the words of the constrained way, if there is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from kubesandbox.auth.rbac import AUTHENTICATED, MASTERS, Asked, Authorizer, User

_ACCOUNT: Final = "system:serviceaccount:"
_NODE: Final = "system:node:"
_NODES: Final = "system:nodes"
_CONSTRAINED_GROUP: Final = "authentication.k8s.io"


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The user in the headers."""

    name: str
    groups: tuple[str, ...]

    @property
    def account(self) -> tuple[str, str] | None:
        """Namespace and name of a ServiceAccount."""
        namespace, colon, name = self.name.removeprefix(_ACCOUNT).partition(":")
        is_one = self.name.startswith(_ACCOUNT) and colon and ":" not in name
        return (namespace, name) if is_one else None

    @property
    def node(self) -> str:
        """Name of the kubelet's node; empty for others."""
        return self.name.removeprefix(_NODE) if self.name.startswith(_NODE) else ""

    @property
    def mode(self) -> str:
        """Kind of the user for constrained impersonation; empty for an account or node with groups, which it does not know."""
        kind = "serviceaccount" if self.account else "arbitrary-node" if self.node else "user-info"
        return "" if self.groups and kind != "user-info" else kind


def impersonated(authorizer: Authorizer, user: User, headers: Mapping[str, str], asked: Asked) -> User:
    """Return the user for a request with these headers. `asked` is the right that it needs. Raises ApiError 403."""
    getall = getattr(headers, "getall", None)
    wanted = _Wanted(headers["Impersonate-User"], tuple(getall("Impersonate-Group", ())) if getall else ())
    refused: Asked | None = None
    for needed, becomes in _ways(wanted, asked):
        missing = next((each for each in needed if _is_never_given(each) or not authorizer.allows(user, each)), None)
        if missing is None:
            return becomes
        refused = refused or missing
    assert refused is not None
    return authorizer.refuse(user, refused)


def _is_never_given(asked: Asked) -> bool:
    """Return whether the user is an administrator, whose rights constrained impersonation never gives."""
    return (asked.resource, asked.group, asked.name) == ("groups", _CONSTRAINED_GROUP, MASTERS)


def _ways(wanted: _Wanted, asked: Asked) -> Iterator[tuple[list[Asked], User]]:
    """Yield the rights that each way needs, and the resulting user."""
    if wanted.mode:
        first = replace(asked, verb=f"impersonate-on:{wanted.mode}:{asked.verb}")
        verb = f"impersonate:{wanted.mode}"
        if wanted.node:
            yield [first, Asked(verb, _CONSTRAINED_GROUP, "nodes", name=wanted.node)], User(wanted.name, (_NODES, AUTHENTICATED))
        else:
            yield [first, *_who(wanted, verb, _CONSTRAINED_GROUP)], _user(wanted)
    yield _who(wanted, "impersonate", ""), _user(wanted)


def _who(wanted: _Wanted, verb: str, group: str) -> list[Asked]:
    """Return the rights to be the user and each of the groups."""
    who = Asked(verb, group, "users", name=wanted.name)
    if wanted.account:
        namespace, name = wanted.account
        who = Asked(verb, group, "serviceaccounts", namespace, name)
    return [who, *(Asked(verb, group, "groups", name=each) for each in wanted.groups)]


def _user(wanted: _Wanted) -> User:
    if wanted.groups:
        return User(wanted.name, (*wanted.groups, AUTHENTICATED))
    return User.service_account(*wanted.account) if wanted.account else User(wanted.name)
