"""Objects that a plugin writes: what it declares, so that its package's role has the right, and no plugin writes more.

The role of the operator has no such right. `python -m placewright.engine.permissions` prints the rights that plugins declare.

Example:
    QUOTA_STATUS = ObjectPatch("example.com", "v1", "quotas/status", namespaced=True)

    class Quotas(PreBindPlugin):
        patches = (QUOTA_STATUS,)

        async def pre_bind(self, state, pod, node):
            await self.handle.patch(QUOTA_STATUS, "team", {"status": {"used": 3}}, namespace=pod.namespace)
            return SUCCESS
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

#: The characters of objects' names. A plugin may take names from what tenants write, so that a slash must not lead to another object.
_NAME: Final = re.compile(r"(?!\.{1,2}\Z)[\w.:-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class ObjectPatch:
    """Objects that a plugin patches; declared in `Plugin.patches`.

    Attributes:
        group: the API group; empty for the core group.
        version: the API version, such as `v1`.
        resource: the plural that stands in the path; with a subresource, `quotas/status`.
        namespaced: whether objects live in namespaces.
    """

    group: str
    version: str
    resource: str
    namespaced: bool = False

    def path(self, name: str, namespace: str = "") -> str:
        """Return the path of an object.

        Args:
            name: the object's name.
            namespace: the object's namespace; empty for an object without.

        Raises:
            ValueError: a namespace is missing, or stands where none belongs; no object can have this name.
        """
        if not _NAME.fullmatch(name):
            raise ValueError(f"{self.resource}: found name {name!r}; allowed the name of an object")
        if not (_NAME.fullmatch(namespace) if self.namespaced else namespace == ""):
            raise ValueError(f"{self.resource}: found namespace {namespace!r}; allowed {'a name' if self.namespaced else 'none'}")
        resource, _, part = self.resource.partition("/")
        where = f"/namespaces/{namespace}" if namespace else ""
        root = f"/apis/{self.group}" if self.group else "/api"
        return f"{root}/{self.version}{where}/{resource}/{name}{f'/{part}' if part else ''}"


class ObjectPatcher(Protocol):
    """The port through which plugins patch objects."""

    async def patch(self, path: str, body: Mapping[str, Any], namespace: str) -> None:
        """Send a merge patch. Temporary errors are tried again.

        Args:
            path: the object's path.
            body: the merge patch; with `metadata.resourceVersion` it is refused once another client changed the object.
            namespace: has one of the places for requests under way; empty for an object without.

        Raises:
            PatchError: it was refused, or this replica does not lead.
        """
