"""Writes a change that a person tried, with the person's own rights: to the profile itself, or to a shadow beside it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import msgspec

from placewright.api.bad_input import InputError
from placewright.api.profile import LIVE, SchedulingProfile
from placewright.cli.profiles.namedprofiles import profile_of
from placewright.cli.profiles.profilewrites import ProfileChange, ProfileWrite
from placewright.framework.registry import Registry
from placewright.kube.client import ApiClient
from placewright.kube.errors import CONFLICT, NOT_FOUND, ApiError, RequestError
from placewright.kube.profileapi import FIELD_MANAGER, Object, read_profile
from placewright.kube.profiles import PROFILES_PATH
from placewright.profiles.problem import Problem
from placewright.profiles.validation import check_object
from placewright_lab.whatif.whatifpatch import can_be_shadowed, changed, shadow_manifest

_INVALID: Final = int(HTTPStatus.UNPROCESSABLE_ENTITY)
_NO_ANSWER: Final = int(HTTPStatus.BAD_GATEWAY)
_OK: Final = int(HTTPStatus.OK)


class Seen(NamedTuple):
    """The version of a profile that a person changed in the form."""

    name: str
    uid: str
    generation: int


class Applied(NamedTuple):
    """The result of a write.

    Attributes:
        status: HTTP status; 200 if the API server stored the object.
        said: sentence for the person, with the words of the API server.
        object: object as the API server stored it; None if it did not.
    """

    status: int
    said: str
    object: Object | None = None


async def apply_change(client: ApiClient, registry: Registry, seen: Seen, changes: Mapping[str, Any]) -> Applied:
    """Patch the version of a profile that the person saw, with a merge patch of its `spec`. The client has the person's rights.

    Any other version is a conflict. The operator's writes of the status make no version.
    """

    async def write(current: Object) -> Applied:
        made = changed(profile_of(current), changes, registry)
        if made.problems:
            return _refused(made.problems)
        if not made.patch:
            return Applied(_INVALID, f"profile {seen.name}: nothing would change")
        change = ProfileChange(current, made.after, made.patch)
        stored = await ProfileWrite({"spec": made.patch}, merge=True, force=False).send(client, change, dry_run=False)
        generation = stored["metadata"].get("generation")
        said = f"the API server stored profile {seen.name} as generation {generation}; its status says whether it takes effect"
        return Applied(_OK, said, stored)

    return await _written(client, seen, write)


async def apply_shadow(client: ApiClient, registry: Registry, seen: Seen, changes: Mapping[str, Any]) -> Applied:
    """Create a shadow with the changed settings beside the version of a live profile that the person saw."""

    async def write(current: Object) -> Applied:
        manifest = _shadow_of(profile_of(current), changes, registry)
        if not isinstance(manifest, dict):
            return _refused(manifest)
        name = str(manifest["metadata"]["name"])
        try:
            answer = await client.post(PROFILES_PATH, msgspec.json.encode(manifest), {"fieldManager": FIELD_MANAGER})
        except ApiError as problem:
            if problem.reason != "AlreadyExists":
                raise
            return Applied(CONFLICT, f"there is a profile {name} already: delete it first, or change it with kubectl")
        said = f"the API server stored the shadow as profile {name}; it decides what {seen.name} decides, and binds nothing"
        return Applied(_OK, said, msgspec.json.decode(answer, type=Object))

    return await _written(client, seen, write)


async def _written(client: ApiClient, seen: Seen, write: Callable[[Object], Awaitable[Applied]]) -> Applied:
    """Write what follows from the current profile, unless the person saw another version of it."""
    try:
        current = await read_profile(client, seen.name)
        return _stale(seen, current) or await write(current)
    except (RequestError, InputError) as problem:
        return _failed(seen, problem)


def _shadow_of(live: SchedulingProfile, changes: Mapping[str, Any], registry: Registry) -> Object | tuple[Problem, ...]:
    if not can_be_shadowed(live):
        return (Problem("spec.mode", live.spec.mode, f"{LIVE}: a shadow has no shadow"),)
    made = changed(live, changes, registry)
    if made.problems:
        return made.problems
    manifest = shadow_manifest(live, made)
    return tuple(check_object(manifest, None, registry)) or manifest


def _stale(seen: Seen, current: Object) -> Applied | None:
    metadata = current["metadata"]
    if metadata.get("uid") != seen.uid:
        return Applied(CONFLICT, f"profile {seen.name} was deleted and created anew since this page read it: open the page again")
    if metadata.get("generation") != seen.generation:
        found = f"generation {metadata.get('generation')} now, {seen.generation} on this page"
        return Applied(CONFLICT, f"profile {seen.name} has changed meanwhile ({found}): open the page again")
    return None


def _refused(problems: tuple[Problem, ...]) -> Applied:
    return Applied(_INVALID, "; ".join(map(str, problems)))


def _failed(seen: Seen, problem: Exception) -> Applied:
    said = " ".join(str(problem).split())
    if isinstance(problem, ApiError):
        if problem.status == CONFLICT:
            return Applied(CONFLICT, f"profile {seen.name} has changed meanwhile: open the page again")
        if problem.status == NOT_FOUND:
            return Applied(NOT_FOUND, f"the API server has no profile {seen.name} (any more): {said}")
        return Applied(problem.status if problem.status in range(400, 600) else _NO_ANSWER, f"the API server refused: {said}")
    if isinstance(problem, InputError):
        return Applied(_INVALID, said)
    return Applied(_NO_ANSWER, f"the API server did not answer, and may have stored the change all the same: {said}")
