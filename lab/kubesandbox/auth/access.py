"""The user of a request and the right that it needs: tokens, impersonation, and the verbs of roles.

The token of the sandbox's own kubeconfig is an administrator's. Any other token is a ServiceAccount's, from `kubectl create token` like on
a real cluster. It gives the rights of the account's roles and bindings while the account exists.

Impersonation: the headers `Impersonate-User` and `Impersonate-Group`, and the rights that they need.

Since Kubernetes 1.36 there are two ways. Constrained impersonation needs two rights together. One is for this request as a user of that
kind (`impersonate-on:user-info:list` on pods). The other is for that user (`impersonate:user-info`). Legacy impersonation needs the one
right to `impersonate`, for any request. The refusal of a user with neither is in the words of the constrained way, if there is one.

Rights from stored roles and bindings, like Kubernetes' RBAC authorizer.

Rights only add up. A request is allowed if one rule covers it. The rule is in a role that is bound to the user or to a group of the user.
Roles that aggregate others are taken literally, because their controller does not run here. A user who may write roles may grant any
rights.
"""

from __future__ import annotations

import re
import secrets
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from hmac import compare_digest
from typing import Final, NoReturn

from kubesandbox.edits.patches import APPLY_PATCH
from kubesandbox.resources import SERVICE_ACCOUNTS, GroupResource, ResourceRegistry
from kubesandbox.status import ApiError, Object, bad_request, not_found, unauthorized
from kubesandbox.storage.metadata import Identity
from kubesandbox.storage.store import Change, Store
from kubesandbox.web.queries import Route, route

GROUP: Final = "rbac.authorization.k8s.io"
#: The group whose members may do everything, without any rule.
MASTERS: Final = "system:masters"

AUTHENTICATED: Final = "system:authenticated"
_KEPT_REFUSALS: Final = 1000
_CLUSTER_BINDINGS: Final[GroupResource] = (GROUP, "clusterrolebindings")
_BINDINGS: Final[GroupResource] = (GROUP, "rolebindings")
_CLUSTER_ROLES: Final[GroupResource] = (GROUP, "clusterroles")
_ROLES: Final[GroupResource] = (GROUP, "roles")

#: Rules for all authenticated users of a real cluster: system:discovery and system:basic-user.
_FOR_EVERYBODY: Final[tuple[Object, ...]] = (
    {"verbs": ["get"], "nonResourceURLs": ["/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", "/version", "/version/"]},
    {
        "verbs": ["create"],
        "apiGroups": ["authorization.k8s.io"],
        "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
    },
)


@dataclass(frozen=True, slots=True)
class User:
    """The user of a request: name and groups."""

    name: str
    groups: tuple[str, ...] = (AUTHENTICATED,)

    @classmethod
    def service_account(cls, namespace: str, name: str) -> User:
        """Return the user of pods with this ServiceAccount."""
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED)
        return cls(f"system:serviceaccount:{namespace}:{name}", groups)


@dataclass(frozen=True, slots=True)
class Asked:
    """The right that a request needs.

    Attributes:
        resource: resource with its subresource (`pods/binding`); empty for a path of no resource.
        path: path of no resource; empty for a resource.
        namespace, name: namespace and name; empty if the request has none.
    """

    verb: str
    group: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request that was not allowed."""

    user: User
    asked: Asked


class Authorizer:
    """Answers for one store. `refusals` are the latest refused requests, the oldest first."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rules: dict[tuple[User, str], tuple[Object, ...]] = {}
        self.refusals: deque[Refusal] = deque(maxlen=_KEPT_REFUSALS)
        for key in (_CLUSTER_BINDINGS, _BINDINGS, _CLUSTER_ROLES, _ROLES):
            store.collection(key).listeners.append(self._forget)

    def check(self, user: User, asked: Asked) -> None:
        """Raise ApiError 403 if the user does not have the right."""
        if not self.allows(user, asked):
            self.refuse(user, asked)

    def refuse(self, user: User, asked: Asked) -> NoReturn:
        """Raise ApiError 403, and remember the refusal."""
        self.refusals.append(Refusal(user, asked))
        raise _refused(user, asked)

    def allows(self, user: User, asked: Asked) -> bool:
        """Return whether the user has the right."""
        return MASTERS in user.groups or any(_covers(rule, asked) for rule in self._rules_of(user, asked.namespace))

    def _rules_of(self, user: User, namespace: str) -> tuple[Object, ...]:
        key = (user, namespace)
        if key not in self._rules:
            self._rules[key] = (*(_FOR_EVERYBODY if AUTHENTICATED in user.groups else ()), *self._bound(user, namespace))
        return self._rules[key]

    def _bound(self, user: User, namespace: str) -> Iterator[Object]:
        for binding in self._store.listed(_CLUSTER_BINDINGS):
            if _is_subject(user, binding.object, ""):
                yield from self._role(binding.object, "")
        for binding in self._store.listed(_BINDINGS, namespace):
            if _is_subject(user, binding.object, namespace):
                yield from self._role(binding.object, namespace)

    def _role(self, binding: Object, namespace: str) -> Iterable[Object]:
        reference = binding.get("roleRef") or {}
        key = {"ClusterRole": (_CLUSTER_ROLES, ""), "Role": (_ROLES, namespace)}.get(reference.get("kind", ""))
        if key is None:
            return ()
        return self._store.content(*key, reference.get("name", "")).get("rules") or ()

    def _forget(self, _change: Change) -> None:
        self._rules.clear()


def _is_subject(user: User, binding: Object, namespace: str) -> bool:
    for subject in binding.get("subjects") or ():
        kind, name = subject.get("kind"), subject.get("name")
        if kind == "User" and name == user.name:
            return True
        if kind == "Group" and name in user.groups:
            return True
        if kind == "ServiceAccount" and user.name == f"system:serviceaccount:{subject.get('namespace') or namespace}:{name}":
            return True
    return False


def _covers(rule: Object, asked: Asked) -> bool:
    if not _has(rule, "verbs", asked.verb):
        return False
    if asked.path:
        return any(_path_matches(each, asked.path) for each in rule.get("nonResourceURLs") or ())
    names = rule.get("resourceNames")
    return _has(rule, "apiGroups", asked.group) and _names_resource(rule, asked.resource) and (not names or asked.name in names)


def _has(rule: Object, field: str, wanted: str) -> bool:
    found = rule.get(field) or ()
    return wanted in found or "*" in found


def _names_resource(rule: Object, resource: str) -> bool:
    _, slash, subresource = resource.partition("/")
    found = rule.get("resources") or ()
    return resource in found or "*" in found or (bool(slash) and f"*/{subresource}" in found)


def _path_matches(pattern: str, path: str) -> bool:
    return path == pattern or (pattern.endswith("*") and path.startswith(pattern[:-1]))


def _refused(user: User, asked: Asked) -> ApiError:
    """Return the refusal in the words of the real server."""
    if asked.path:
        return ApiError(403, "Forbidden", f'forbidden: User "{user.name}" cannot {asked.verb} path "{asked.path}"')
    plural = asked.resource.partition("/")[0]
    kind = f"{plural}.{asked.group}" if asked.group else plural
    subject = f'{kind} "{asked.name}"' if asked.name else kind
    where = f'in the namespace "{asked.namespace}"' if asked.namespace else "at the cluster scope"
    why = f'User "{user.name}" cannot {asked.verb} resource "{asked.resource}" in API group "{asked.group}" {where}'
    details = {"name": asked.name, "group": asked.group, "kind": plural}
    return ApiError(403, "Forbidden", f"{subject} is forbidden: {why}", {key: value for key, value in details.items() if value})


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
