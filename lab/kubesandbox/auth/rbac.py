"""Rights from stored roles and bindings, like Kubernetes' RBAC authorizer.

Rights only add up. A request is allowed if one rule covers it. The rule is in a role that is bound to the user or to a group of the user.
Roles that aggregate others are taken literally, because their controller does not run here. A user who may write roles may grant any
rights.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NoReturn

from kubesandbox.resources import GroupResource
from kubesandbox.status import ApiError, Object
from kubesandbox.storage.store import Change, Store

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
        found = self._store.get(*key, reference.get("name", ""))
        return (found.object.get("rules") or ()) if found is not None else ()

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
