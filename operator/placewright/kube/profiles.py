"""The status of SchedulingProfiles, and of any other object of ours: merge patches of `/status`, never of `spec`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from placewright.api.profile import GROUP, PLURAL, VERSION
from placewright.kube.client import MERGE_PATCH, ApiClient
from placewright.kube.discovery import collection_path

FIELD_MANAGER: Final = "placewright"
PROFILES_PATH: Final = collection_path(GROUP, VERSION, PLURAL)


async def patch_status(client: ApiClient, path: str, status: Mapping[str, Any]) -> None:
    """Merge-patch the status of the object at `path` (lists, conditions among them, are replaced as a whole).

    Raises `ApiError` (404 when the object is gone) and `Unreachable`.
    """
    await client.patch(f"{path}/status", {"status": status}, {"fieldManager": FIELD_MANAGER}, MERGE_PATCH)


def profile_path(name: str) -> str:
    """Path of the SchedulingProfile of that name."""
    return f"{PROFILES_PATH}/{name}"
