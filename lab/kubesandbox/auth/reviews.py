"""Answers to reviews. These are questions about tokens and rights, posted as objects, answered in their status and never stored."""

from __future__ import annotations

from typing import Final

from kubesandbox.auth.access import Access, Asked, User
from kubesandbox.status import Object, bad_request

GROUPS: Final = ("authentication.k8s.io", "authorization.k8s.io")
_ONE_OF: Final = "exactly one of nonResourceAttributes or resourceAttributes must be specified"


class Reviews:
    """Answers from the tokens, roles and bindings that also decide about requests."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def answer(self, kind: str, user: User, sent: object) -> Object:
        """Return the review of `user`, with its status. Raises ApiError 400."""
        review: Object = dict(sent) if isinstance(sent, dict) else {}
        spec = review.get("spec")
        spec = spec if isinstance(spec, dict) else {}
        if kind == "TokenReview":
            return {**review, "status": self._token(spec)}
        asked = _asked(spec.get("resourceAttributes"), spec.get("nonResourceAttributes"))
        about = _subject(spec) if kind == "SubjectAccessReview" else user
        return {**review, "status": {"allowed": self._access.authorizer.allows(about, asked)}}

    def _token(self, spec: Object) -> Object:
        token = spec.get("token")
        if not isinstance(token, str) or not token:
            raise bad_request("token is required for TokenReview in authentication")
        found = self._access.holder(token)
        if found is None:
            return {"user": {}, "error": "invalid bearer token"}
        user, uid = found
        return {"authenticated": True, "user": {"username": user.name, "groups": list(user.groups), **({"uid": uid} if uid else {})}}


def _subject(spec: Object) -> User:
    """Return the user that a SubjectAccessReview is about."""
    name, groups = spec.get("user") or "", spec.get("groups") or []
    if not isinstance(name, str) or not isinstance(groups, list) or not (name or groups):
        raise bad_request("spec.user: at least one of user or group must be specified")
    return User(name, tuple(str(group) for group in groups))


def _asked(attributes: object, path: object) -> Asked:
    if isinstance(path, dict) == isinstance(attributes, dict):
        raise bad_request(f"spec: {_ONE_OF}")
    if isinstance(path, dict):
        return Asked(str(path.get("verb", "")), path=str(path.get("path", "")))
    wanted: Object = attributes if isinstance(attributes, dict) else {}
    verb, group, resource, subresource, namespace, name = (
        str(wanted.get(field) or "") for field in ("verb", "group", "resource", "subresource", "namespace", "name")
    )
    return Asked(verb, group, f"{resource}/{subresource}" if subresource else resource, namespace, name)
