"""What this API server serves: Kubernetes 1.20 to 1.36 and later differ in groups and versions.

Asked once at start. A version is chosen by what we can read, newest and most stable first; what lacks is said once, with what then does
not work, and is never an error.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from placewright.kube.client import ApiClient
from placewright.kube.errors import FORBIDDEN, NOT_FOUND, ApiError

#: Groups that any part of Placewright may ask for; "" is the core group.
GROUPS: Final = (
    "", "apps", "autoscaling.k8s.io", "coordination.k8s.io", "events.k8s.io", "kopf.dev", "placewright.dev", "policy", "resource.k8s.io",
    "scheduling.k8s.io", "storage.k8s.io",
)  # fmt: skip

_VERSION: Final = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_STABILITY: Final = {"alpha": 0, "beta": 1, None: 2}

_log = logging.getLogger(__name__)


class _GroupVersion(msgspec.Struct, rename="camel"):
    version: str = ""


class _Group(msgspec.Struct, rename="camel"):
    name: str = ""
    versions: list[_GroupVersion] | None = None


class _GroupList(msgspec.Struct, rename="camel"):
    groups: list[_Group] | None = None


class _Resource(msgspec.Struct, rename="camel"):
    name: str = ""


class _ResourceList(msgspec.Struct, rename="camel"):
    resources: list[_Resource] | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """A collection somebody wants to read.

    Attributes:
        group, resource: such as `policy`, `poddisruptionbudgets`.
        versions: those that can be read, best first; empty for any.
        without: what does not work when it lacks, a half-sentence for the log.
    """

    group: str
    resource: str
    versions: tuple[str, ...] = ()
    without: str = ""


@dataclass(slots=True)
class ServedResources:
    """Which collections the server serves.

    Attributes:
        served: group and resource to the versions that have it.
    """

    served: dict[tuple[str, str], list[str]]
    _said: set[tuple[str, str]] = field(default_factory=set)

    def best(self, group: str, resource: str, versions: Sequence[str] = ()) -> str | None:
        """Path of the collection over all namespaces, in the best version served; None when it is not served.

        `versions` names those the caller can read, best first; otherwise stable before beta before alpha, then the higher number.
        """
        found = self.served.get((group, resource), [])
        if versions:
            chosen = next((version for version in versions if version in found), None)
        else:
            chosen = max(found, key=version_rank, default=None)
        return collection_path(group, chosen, resource) if chosen else None

    def find(self, wanted: Wanted) -> str | None:
        """As `best`; what lacks is logged, once."""
        path = self.best(wanted.group, wanted.resource, wanted.versions)
        if path is None and (wanted.group, wanted.resource) not in self._said:
            self._said.add((wanted.group, wanted.resource))
            _log.warning(
                "API server does not serve %s%s%s: %s",
                wanted.resource + (f".{wanted.group}" if wanted.group else ""),
                " in " if wanted.versions else "",
                " or ".join(wanted.versions),
                wanted.without or "goes on without",
            )
        return path


def version_rank(version: str) -> tuple[int, int, int]:
    """Order of API versions: v2 > v1 > v1beta2 > v1beta1 > v1alpha1; anything else last."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (-1, 0, 0)
    major, stability, minor = match.groups()
    return (_STABILITY[stability], int(major), int(minor or 0))


def collection_path(group: str, version: str, resource: str) -> str:
    """`/api/v1/pods`, `/apis/policy/v1/poddisruptionbudgets`."""
    return f"{_root(group, version)}/{resource}"


def _root(group: str, version: str) -> str:
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


async def discover(client: ApiClient, groups: Iterable[str] = GROUPS) -> ServedResources:
    """Ask the server; raises `Unreachable` or `ApiError` when it does not answer (see `retry.until_answered`)."""
    wanted = set(groups)
    listed = await client.get_as("/apis", _GroupList)
    versions = [(group.name, one.version) for group in listed.groups or () if group.name in wanted for one in group.versions or ()]
    if "" in wanted:
        versions.append(("", "v1"))
    names = await asyncio.gather(*(_resources(client, group, version) for group, version in versions))
    served: dict[tuple[str, str], list[str]] = {}
    for (group, version), resources in zip(versions, names, strict=True):
        for resource in resources:
            served.setdefault((group, resource), []).append(version)
    return ServedResources(served)


async def _resources(client: ApiClient, group: str, version: str) -> list[str]:
    try:
        found = await client.get_as(_root(group, version), _ResourceList)
    except ApiError as error:
        # A group that was just removed, or that we may not see, is one that is not served to us.
        if error.status in (NOT_FOUND, FORBIDDEN):
            return []
        raise
    return [resource.name for resource in found.resources or () if "/" not in resource.name]
