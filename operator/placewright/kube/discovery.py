"""Finds out which groups and versions this API server serves: Kubernetes 1.20 to 1.36 and later differ.

Discovery runs at the start and again every few minutes, because API servers are upgraded under a running scheduler. Of the served versions
the first that we can read is chosen. A missing collection is no error: the plugin that reads it sees none of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import msgspec

from placewright.api.decode import DecodeError
from placewright.kube.client import ApiClient
from placewright.kube.errors import FORBIDDEN, NOT_FOUND, ApiError
from placewright.kube.retry import RetryBackoff, Sleep, with_retries

#: Number of times that a group that answers with an error is asked before it counts as silent.
ATTEMPTS: Final = 4


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
    """A collection that a plugin reads.

    Attributes:
        group, resource: such as `policy`, `poddisruptionbudgets`.
        versions: that can be read, best first.
        reader: the plugin that sees none of it if the server lacks it.
    """

    group: str
    resource: str
    versions: tuple[str, ...]
    reader: str

    def __str__(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource


@dataclass(frozen=True, slots=True)
class Collection:
    """A served collection: its path over all namespaces, and the API version of that path."""

    path: str
    version: str


@dataclass(frozen=True, slots=True)
class ServedResources:
    """The collections that the server serves.

    Attributes:
        served: (group, resource) to the versions that have it.
        silent: `group/version` of groups that are listed and only answer with errors; their collections are unknown.
    """

    served: dict[tuple[str, str], list[str]]
    silent: tuple[str, ...] = ()

    def find(self, wanted: Wanted) -> Collection | None:
        """Find a wanted collection in the first of its versions that is served.

        Args:
            wanted: the collection and the versions that can be read.

        Returns:
            The collection; None when none of the versions is served.
        """
        found = self.served.get((wanted.group, wanted.resource), ())
        for version in wanted.versions:
            if version in found:
                return Collection(collection_path(wanted.group, version, wanted.resource), version)
        return None


def collection_path(group: str, version: str, resource: str) -> str:
    """Build the path of a collection over all namespaces.

    Args:
        group: empty for the core group.
        version: such as `v1`.
        resource: such as `pods`.

    Returns:
        Such as `/api/v1/pods` or `/apis/policy/v1/poddisruptionbudgets`.
    """
    return f"{_root(group, version)}/{resource}"


def _root(group: str, version: str) -> str:
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


async def discover(
    client: ApiClient,
    groups: Iterable[str],
    *,
    backoff: RetryBackoff = RetryBackoff(initial=0.2, maximum=2.0),  # noqa: B008 - frozen
    sleep: Sleep = asyncio.sleep,
) -> ServedResources:
    """Ask which collections are served in these groups and in the core group.

    A group that answers only with errors or with nonsense, as one whose APIService is down, is `silent`; it does not fail the discovery.

    Args:
        client: the API server's client.
        groups: API groups to ask for.
        backoff: waits between the attempts for one group.
        sleep: waits so many seconds.

    Raises:
        ApiError: the server refused the list of groups, or the core group.
        Unreachable: the server did not answer (see `retry.until_answered`).
        DecodeError: its list of groups has another shape.
    """
    wanted = set(groups)
    listed = await client.get_as("/apis", _GroupList)
    asked = [(group.name, one.version) for group in listed.groups or () if group.name in wanted for one in group.versions or ()]
    core = await _resources(client, "", "v1")
    answers = await asyncio.gather(*(_resources_or_none(client, group, version, backoff, sleep) for group, version in asked))
    served: dict[tuple[str, str], list[str]] = {}
    for (group, version), names in zip([("", "v1"), *asked], [core, *answers], strict=True):
        for name in names or ():
            served.setdefault((group, name), []).append(version)
    silent = tuple(f"{group}/{version}" for (group, version), names in zip(asked, answers, strict=True) if names is None)
    return ServedResources(served, silent)


async def _resources_or_none(client: ApiClient, group: str, version: str, backoff: RetryBackoff, sleep: Sleep) -> list[str] | None:
    try:
        return await with_retries(lambda: _resources(client, group, version), ATTEMPTS, backoff, sleep)
    except (ApiError, DecodeError):
        return None


async def _resources(client: ApiClient, group: str, version: str) -> list[str]:
    try:
        found = await client.get_as(_root(group, version), _ResourceList)
    except ApiError as error:
        # A group that was removed meanwhile, or that we may not read, is not served to us.
        if group and error.status in (NOT_FOUND, FORBIDDEN):
            return []
        raise
    return [resource.name for resource in found.resources or () if "/" not in resource.name]
