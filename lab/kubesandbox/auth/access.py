"""The user of a request and the right that it needs: tokens, impersonation, and the verbs of roles.

The token of the sandbox's own kubeconfig is an administrator's. Any other token is a ServiceAccount's, from `kubectl create token` like on
a real cluster. It gives the rights of the account's roles and bindings while the account exists.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from hmac import compare_digest
from typing import Final

from kubesandbox.auth.impersonation import impersonated
from kubesandbox.auth.rbac import AUTHENTICATED, MASTERS, Asked, Authorizer, User
from kubesandbox.edits.patches import APPLY_PATCH
from kubesandbox.resources import SERVICE_ACCOUNTS, ResourceRegistry
from kubesandbox.status import Object, bad_request, not_found, unauthorized
from kubesandbox.storage.metadata import Identity
from kubesandbox.storage.store import Store
from kubesandbox.web.routes import Route, route

ADMINISTRATOR: Final = User("placewright-sandbox", (MASTERS, AUTHENTICATED))
#: Seconds of a token's longest life.
LONGEST_TOKEN: Final = 24 * 3600

_DEFAULT_TOKEN: Final = 3600
_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_NAME_FIELD: Final = re.compile(r"(?:^|,)metadata\.name==?([^,]+)")


@dataclass(frozen=True, slots=True)
class _Token:
    namespace: str
    name: str
    uid: str
    until: float


class Access:
    """Authenticates users and checks their rights.

    Attributes:
        tokens: ServiceAccounts' tokens by their text.
    """

    def __init__(self, token: str, store: Store, registry: ResourceRegistry, identity: Identity) -> None:
        """Take the administrator's `token`, and an `identity` whose clock ends tokens."""
        self.authorizer = Authorizer(store)
        self._administrator = token.encode()
        self._store = store
        self._registry = registry
        self._identity = identity
        self._tokens: dict[str, _Token] = {}

    # --- who ---------------------------------------------------------------------------------------------------------

    def user(self, method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str]) -> User:
        """Return the user of a request. Raises ApiError 401, or 403 for a user who may not impersonate another."""
        found = self._owner(headers.get("Authorization", ""))
        if not headers.get("Impersonate-User"):
            return found
        return impersonated(self.authorizer, found, headers, _asked(route(self._registry, path), method, path, query))

    def _owner(self, authorization: str) -> User:
        found = self.holder(authorization.removeprefix("Bearer ")) if authorization.startswith("Bearer ") else None
        if found is None:
            raise unauthorized()
        return found[0]

    def holder(self, text: str) -> tuple[User, str] | None:
        """Return the user of a token, and the uid (empty for the administrator); None for an unknown token."""
        if compare_digest(text.encode("utf-8", "surrogateescape"), self._administrator):
            return ADMINISTRATOR, ""
        token = self._tokens.get(text)
        if token is None or token.until < self._identity.clock():
            return None
        account = self._store.get(SERVICE_ACCOUNTS, token.namespace, token.name)
        if account is None or account.uid != token.uid:
            return None
        return User.service_account(token.namespace, token.name), token.uid

    def new_token(self, namespace: str, name: str, seconds: int = _DEFAULT_TOKEN) -> str:
        """Return a token of an existing ServiceAccount. Raises ApiError 404."""
        account = self._store.get(SERVICE_ACCOUNTS, namespace, name)
        if account is None:
            raise not_found(self._registry.served(SERVICE_ACCOUNTS), name)
        text = secrets.token_urlsafe(32)
        self._tokens[text] = _Token(namespace, name, account.uid, self._identity.clock() + min(seconds, LONGEST_TOKEN))
        return text

    def answer_token_request(self, namespace: str, name: str, sent: object) -> Object:
        """Return the TokenRequest with its status. Raises ApiError 400 and 404."""
        request: Object = dict(sent) if isinstance(sent, dict) else {}
        seconds = (request.get("spec") or {}).get("expirationSeconds") or _DEFAULT_TOKEN
        if not isinstance(seconds, int) or seconds < 600:
            raise bad_request("TokenRequest: spec.expirationSeconds: must be at least 600")
        token = self.new_token(namespace, name, seconds)
        until = self._identity.later(min(seconds, LONGEST_TOKEN))
        return {**request, "status": {"token": token, "expirationTimestamp": until}}

    # --- what --------------------------------------------------------------------------------------------------------

    def check(self, user: User, method: str, path: str, query: Mapping[str, str], content_type: str = "") -> None:
        """Raise ApiError 403 unless the user has the right that the request needs."""
        if MASTERS in user.groups:
            return
        found = route(self._registry, path)
        asked = _asked(found, method, path, query)
        self.authorizer.check(user, asked)
        if found is not None and content_type.startswith(APPLY_PATCH) and not found.subresource and not self._is_there(found):
            self.authorizer.check(user, Asked("create", asked.group, asked.resource, asked.namespace, asked.name))

    def _is_there(self, found: Route) -> bool:
        return self._store.get(found.resource.key, found.scope, found.name) is not None


def _asked(found: Route | None, method: str, path: str, query: Mapping[str, str]) -> Asked:
    return Asked(method.lower(), path=path) if found is None else asked_of(found, method, query)


def asked_of(found: Route, method: str, query: Mapping[str, str]) -> Asked:
    """Return the right that a request on a resource needs, in the terms of roles."""
    name = found.name
    if method in ("GET", "HEAD"):
        verb = "get" if name else "watch" if query.get("watch") in ("1", "true") else "list"
    else:
        verb = _VERBS.get(method, method.lower())
    if verb == "delete" and not name:
        verb = "deletecollection"
    if not name and verb in ("list", "watch", "deletecollection"):
        name = _name_selected(query.get("fieldSelector", ""))
    resource = found.resource.plural + (f"/{found.subresource}" if found.subresource else "")
    namespace = found.name if found.resource.key == ("", "namespaces") else found.scope
    return Asked(verb, found.resource.group, resource, namespace, name)


def _name_selected(fields: str) -> str:
    """Return the name in a field selector, because a right on a name covers a list of that name."""
    found = _NAME_FIELD.search(fields)
    return found[1] if found else ""
