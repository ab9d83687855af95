"""What people name on the command line: a profile of the cluster, a revision of it, or a file."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from placewright.api.bad_input import InputError, bad_field
from placewright.api.decode import DecodeError, convert
from placewright.api.objects import ObjectMeta
from placewright.api.profile import SchedulingProfile
from placewright.framework.registry import Registry, installed_plugins
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.kube.client import ApiClient
from placewright.kube.errors import NOT_FOUND, ApiError, RequestError
from placewright.kube.history import HistoryStore, RecordedGeneration, Revision
from placewright.kube.profileapi import Object, read_profile
from placewright.plugins.catalog import in_tree
from placewright.profiles.config import read_profiles
from placewright.profiles.problem import ProfileError
from placewright.profiles.profilestate import Reason
from placewright.profiles.resolve import resolve

_REVISION: Final = re.compile(r"(?P<name>[^@]+)@(?P<number>[0-9]{1,18})")
_FILES: Final = (".yaml", ".yml", ".json")
NAMED: Final = "NAME, NAME@REVISION, or a file"


@dataclass(frozen=True, slots=True)
class NamedProfile:
    """A profile, and how it is called in what is printed."""

    label: str
    profile: SchedulingProfile

    def resolved(self, catalogue: Registry) -> ResolvedProfile:
        """The effective profile; raises `ProfileError` that names the subject."""
        try:
            return resolve(self.profile, catalogue)
        except ProfileError as error:
            raise ProfileError(error.problems, self.label) from None


def catalogue() -> Registry:
    """The plugins that this placewright has; the operator may have others."""
    return in_tree().extended(installed_plugins())


def names_file(text: str) -> bool:
    """Whether the text names a file: it looks like one, or is one and no profile could be called so."""
    return text == "-" or os.sep in text or text.endswith(_FILES)


def needs_cluster(text: str) -> bool:
    """Whether a cluster has to be asked."""
    return not names_file(text)


def from_file(text: str, wanted: str = "") -> NamedProfile:
    """The only profile of a file, or the one called `wanted`; raises `InputError`."""
    try:
        content = sys.stdin.read() if text == "-" else Path(text).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{text}: {getattr(error, 'strerror', None) or error}") from None
    profiles = {profile.metadata.name: profile for profile in read_profiles(content, text)}
    if wanted in profiles or len(profiles) == 1:
        return NamedProfile(text, profiles.get(wanted) or next(iter(profiles.values())))
    raise bad_field(f"{text}: profiles", ", ".join(profiles), f"one profile, or one of them called {wanted}" if wanted else "one profile")


async def from_cluster(client: ApiClient, history: HistoryStore, text: str) -> NamedProfile:
    """A profile as it is, or a revision of it; raises `InputError` and `RequestError`."""
    revision = _REVISION.fullmatch(text)
    if revision is None:
        return NamedProfile(text, profile_of(await existing(client, text)))
    return of_revision(find(await history.revisions(revision["name"]), revision["name"], int(revision["number"])))


async def existing(client: ApiClient, name: str) -> Object:
    """The profile as the API server shows it; raises `InputError` when there is none of that name."""
    if not re.fullmatch(r"[a-z0-9][-a-z0-9.]*", name):
        raise bad_field("profile", name, f"a name; see placewright profiles list ({NAMED})")
    try:
        return await read_profile(client, name)
    except ApiError as error:
        if error.status != NOT_FOUND:
            raise
        raise InputError(f"there is no profile {name!r}; placewright profiles list shows those there are") from None


def profile_of(body: Object) -> SchedulingProfile:
    """The profile in an object; raises `InputError` where it is none."""
    try:
        return convert(body, SchedulingProfile)
    except DecodeError as error:
        raise InputError(f"profile {body['metadata']['name']}: {error}") from None


def find(revisions: list[Revision], name: str, number: int) -> Revision:
    """The revision of that number; raises `InputError` with those there are."""
    for revision in reversed(revisions):
        if revision.number == number:
            return revision
    known = ", ".join(str(revision.number) for revision in revisions) or "none, nothing is recorded"
    raise InputError(f"profile {name}: found revision {number}; allowed {known}")


def of_revision(revision: Revision) -> NamedProfile:
    """The profile as it was; raises `InputError` where it was none."""
    return NamedProfile(f"{revision.recorded.profile}@{revision.number}", recorded_profile(revision.recorded))


def recorded_profile(recorded: RecordedGeneration) -> SchedulingProfile:
    """The profile that was recorded; raises `InputError` where it was none."""
    body: dict[str, Any] = {"metadata": {"name": recorded.profile, "uid": recorded.uid, "generation": recorded.generation}}
    return profile_of({**body, "spec": recorded.spec})


def took(revision: Revision) -> bool:
    """Whether the generation came into effect, as far as anybody knows."""
    return revision.result in set(Reason) and not Reason(revision.result).stalls


def active_generation(body: Object) -> int:
    """The generation that decisions use; 0 for none."""
    return int((body.get("status") or {}).get("activeGeneration") or 0)


async def in_effect(history: HistoryStore, body: Object) -> NamedProfile | None:
    """The generation that decisions use, from the history; None where that does not have it."""
    meta = convert(body["metadata"], ObjectMeta)
    try:
        revisions = await history.revisions(meta.name)
    except RequestError:
        return None
    wanted = (meta.uid, active_generation(body))
    found = next((each for each in revisions if (each.recorded.uid, each.recorded.generation) == wanted), None)
    return None if found is None else of_revision(found)
