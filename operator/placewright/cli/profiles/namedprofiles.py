"""Finds the profile that a person names: a profile of the cluster, a revision of it, or a file."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any, Final

from placewright.api.bad_input import InputError, bad_field
from placewright.api.decode import DecodeError, convert
from placewright.api.profile import SchedulingProfile
from placewright.cli.options import read_text
from placewright.cli.profiles.connection import if_found
from placewright.framework.registry import Registry, installed_plugins
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.kube.client import ApiClient
from placewright.kube.errors import RequestError
from placewright.kube.history import HistoryStore, RecordedGeneration, Revision
from placewright.kube.profileapi import Object, read_profile
from placewright.plugins.catalog import in_tree
from placewright.profiles.config import read_profiles
from placewright.profiles.problem import ProfileError
from placewright.profiles.profilestate import TOOK_EFFECT, Reason
from placewright.profiles.resolve import resolve

#: NAME@REVISION. Every number of up to 18 digits fits into 64 bits.
_REVISION: Final = re.compile(r"(?P<name>[^@]+)@(?P<number>[0-9]{1,18})")
_FILES: Final = (".yaml", ".yml", ".json")
NAMED: Final = "NAME, NAME@REVISION, or a file"


@dataclass(frozen=True, slots=True)
class NamedProfile:
    """A profile, and its name in output."""

    label: str
    profile: SchedulingProfile

    def resolved(self, catalogue: Registry) -> ResolvedProfile:
        """Resolve the profile.

        Args:
            catalogue: the plugins that exist here.

        Raises:
            ProfileError: it does not resolve; the message names it.
        """
        try:
            return resolve(self.profile, catalogue)
        except ProfileError as error:
            raise ProfileError(error.problems, self.label) from None


def catalogue() -> Registry:
    """List the plugins that are installed here; the operator may have others."""
    return in_tree().with_installed(installed_plugins())


def names_file(text: str) -> bool:
    """Whether a text names a file: no profile could have such a name.

    Returns:
        True for `-`, a path, and the endings of YAML and JSON.
    """
    return text == "-" or os.sep in text or text.endswith(_FILES)


def from_file(text: str, wanted: str = "") -> NamedProfile:
    """Read a profile from a file.

    Args:
        text: its name; `-` for standard input.
        wanted: name of one of several profiles; empty for the only one.

    Raises:
        InputError: it cannot be read, or the file has no or several such profiles.
    """
    profiles = {profile.metadata.name: profile for profile in read_profiles(read_text(text), text)}
    if wanted in profiles or len(profiles) == 1:
        return NamedProfile(text, profiles.get(wanted) or next(iter(profiles.values())))
    raise bad_field(f"{text}: profiles", ", ".join(profiles), f"one profile, or one of them called {wanted}" if wanted else "one profile")


async def from_cluster(client: ApiClient, history: HistoryStore, text: str) -> NamedProfile:
    """Read a profile or a revision.

    Args:
        client: client of the API server.
        history: history of the profiles.
        text: NAME or NAME@REVISION.

    Raises:
        InputError: there is none.
        RequestError: the server refused or did not answer.
    """
    revision = _REVISION.fullmatch(text)
    if revision is None:
        return NamedProfile(text, profile_of(await existing(client, text)))
    return of_revision(find(await history.revisions(revision["name"]), revision["name"], int(revision["number"])))


async def existing(client: ApiClient, name: str) -> Object:
    """Read a profile.

    Returns:
        The profile as the API server shows it.

    Raises:
        InputError: there is none of that name.
        RequestError: the server refused or did not answer.
    """
    # The name becomes a part of the request's path, so it must not contain a slash or a question mark.
    if not re.fullmatch(r"[a-z0-9][-a-z0-9.]*", name):
        raise bad_field("profile", name, f"a name; see placewright profiles list ({NAMED})")
    found = await if_found(read_profile(client, name))
    if found is None:
        raise InputError(f"there is no profile {name!r}; placewright profiles list shows all")
    return found


def profile_of(body: Object) -> SchedulingProfile:
    """Decode a profile.

    Raises:
        InputError: it has another shape.
    """
    try:
        return convert(body, SchedulingProfile)
    except DecodeError as error:
        raise InputError(f"profile {body['metadata']['name']}: {error}") from None


def find(revisions: list[Revision], name: str, number: int) -> Revision:
    """Find a revision by its number.

    Raises:
        InputError: there is none; the message lists the numbers.
    """
    for revision in reversed(revisions):
        if revision.number == number:
            return revision
    known = ", ".join(str(revision.number) for revision in revisions) or "none, nothing is recorded"
    raise InputError(f"profile {name}: found revision {number}; allowed {known}")


def of_revision(revision: Revision) -> NamedProfile:
    """Decode the profile of a revision.

    Raises:
        InputError: it has another shape.
    """
    return NamedProfile(f"{revision.recorded.profile}@{revision.number}", recorded_profile(revision.recorded))


def recorded_profile(recorded: RecordedGeneration) -> SchedulingProfile:
    """Decode a recorded profile.

    Raises:
        InputError: it has another shape.
    """
    body: dict[str, Any] = {"metadata": {"name": recorded.profile, "uid": recorded.uid, "generation": recorded.generation}}
    return profile_of({**body, "spec": recorded.spec})


def took(revision: Revision) -> bool:
    """Whether a generation took effect, as far as the history tells.

    Returns:
        True when it did.
    """
    return revision.result in TOOK_EFFECT or revision.result == Reason.APPLYING


def condition(body: Object, kind: str) -> Object:
    """Find a condition in an object's status; return an empty object if there is none."""
    conditions = (body.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each.get("type") == kind), {})


def active_generation(body: Object) -> int:
    """Read the generation that decisions use.

    Returns:
        The generation; 0 for none.
    """
    return int((body.get("status") or {}).get("activeGeneration") or 0)


async def in_effect(history: HistoryStore, body: Object) -> NamedProfile | None:
    """Find the generation that decisions use in the history.

    Returns:
        The profile; None if the history does not have it, or may not be read.
    """
    try:
        revisions = await history.revisions(body["metadata"]["name"])
    except RequestError:  # without the history a command still does the rest of its work
        return None
    wanted = (body["metadata"].get("uid", ""), active_generation(body))
    found = next((each for each in revisions if (each.recorded.uid, each.recorded.generation) == wanted), None)
    return None if found is None else of_revision(found)
