"""Who may write which part of a claim's status: since Kubernetes 1.36 that takes more than the right to its status.

Source of the rules: `pkg/registry/resource` (DRAResourceClaimGranularStatusAuthorization, on by default). What a scheduler writes needs
`resourceclaims/binding` for all namespaces; what drivers say of devices needs `resourceclaims/driver`, named by the driver. Tokens that
belong to a node are not known here, so that the verb for them is never asked.
"""

from __future__ import annotations

from collections.abc import Iterable

from kubesandbox.devices.defaults import GROUP
from kubesandbox.devices.fields import Fault, forbidden
from kubesandbox.devices.statusrules import device_key
from kubesandbox.rbac import Asked, Authorizer, User
from kubesandbox.resources import GroupResource, ResourceType
from kubesandbox.status import ApiError, Object, invalid

CLAIMS: GroupResource = (GROUP, "resourceclaims")


class StatusRights:
    """What one user may write with one verb (`update`, `patch`)."""

    def __init__(self, authorizer: Authorizer, user: User, verb: str) -> None:
        self._authorizer = authorizer
        self._user = user
        self._verb = verb

    def check(self, resource: ResourceType, old: Object, new: Object) -> None:
        """Raises ApiError 422, as the real server does, for a part that the user may not write."""
        before, after = old.get("status") or {}, new.get("status") or {}
        faults: list[Fault] = []
        if any(before.get(part) != after.get(part) for part in ("allocation", "reservedFor")):
            asked = Asked(self._verb, GROUP, "resourceclaims/binding")
            faults += self._missing(asked, "status.allocation or status.reservedFor", asked.verb)
        for driver in sorted(_changed(before.get("devices") or (), after.get("devices") or ())):
            verb, namespace = f"arbitrary-node:{self._verb}", new["metadata"]["namespace"]
            asked = Asked(verb, GROUP, "resourceclaims/driver", namespace, driver)
            faults += self._missing(asked, "status.devices", f"[{verb}]")
        if faults:
            raise invalid(resource, new["metadata"]["name"], faults)

    def _missing(self, asked: Asked, what: str, verbs: str) -> list[Fault]:
        try:
            self._authorizer.check(self._user, asked)
        except ApiError as refused:
            needed = f'requires resource="{asked.resource}", verb="{verbs}" permission: {refused.message}'
            return [forbidden(what.partition(" ")[0], f"changing {what} {needed}")]
        return []


def _changed(before: Iterable[Object], after: Iterable[Object]) -> set[str]:
    """The drivers of which entries came, went or changed."""
    old, new = ({device_key(each): each for each in devices} for devices in (before, after))
    return {key[0] for key in old.keys() | new.keys() if old.get(key) != new.get(key)}
