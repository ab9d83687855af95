"""The rights to write the allocation and the consumers of a claim. Since Kubernetes 1.36 the right to its status does not suffice.

The rules come from `pkg/registry/resource` (DRAResourceClaimGranularStatusAuthorization, on by default). A scheduler's writes need
`resourceclaims/binding` for all namespaces. A real API server also checks a right, named by the driver, for drivers' reports on devices.
"""

from __future__ import annotations

from dataclasses import dataclass

from kubesandbox.auth.access import Asked, Authorizer, User
from kubesandbox.devices.defaults import GROUP
from kubesandbox.fields import forbidden
from kubesandbox.resources import ResourceType
from kubesandbox.status import ApiError, Object, invalid


@dataclass(frozen=True)
class StatusRights:
    """The parts of a status that one user may write with one verb (`update`, `patch`)."""

    authorizer: Authorizer
    user: User
    verb: str

    def check(self, resource: ResourceType, old: Object, new: Object) -> None:
        """Raise ApiError 422, like the real server, for a change that the user may not make."""
        before, after = old.get("status") or {}, new.get("status") or {}
        if all(before.get(part) == after.get(part) for part in ("allocation", "reservedFor")):
            return
        asked = Asked(self.verb, GROUP, "resourceclaims/binding")
        try:
            self.authorizer.check(self.user, asked)
        except ApiError as refused:
            needed = f'requires resource="{asked.resource}", verb="{asked.verb}" permission: {refused.message}'
            fault = forbidden("status.allocation", f"changing status.allocation or status.reservedFor {needed}")
            raise invalid(resource, new["metadata"]["name"], [fault]) from refused
