"""Checks files of profiles as one set and places each problem in its text, for `placewright validate`.

The checks are the operator's and, for manifests, the CRD's schema. The API server accepts files that pass. Their profiles take effect
together with each other and with the cluster's. Objects of other kinds are skipped: a repository's files are checked as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, NamedTuple

import jsonschema

from placewright.api.bad_input import in_json, printable
from placewright.api.profile import GROUP, KIND, LIVE, SchedulingProfile
from placewright.api.yamldocs import Document, Place, YamlNode, place_of
from placewright.profiles.advice import UNKNOWN_SURROUNDINGS, Recommendation, Surroundings, advise_beforehand
from placewright.profiles.check import check_same_mode, check_same_name
from placewright.profiles.config import CONFIG_API_VERSION, CONFIG_KIND, read_profiles, refuse_repeated_names
from placewright.profiles.defaults import Catalogue
from placewright.profiles.documents import UnreadableDocument, parse_placed
from placewright.profiles.kubescheduler.configuration import read_configuration
from placewright.profiles.kubescheduler.findings import ConversionFindings
from placewright.profiles.podoverlap import rivals
from placewright.profiles.problem import UNKNOWN_FIELD, Problem, ProfileError, did_you_mean
from placewright.profiles.resolve import resolve
from placewright.profiles.schema import json_schema

_KIND_OF: Final[Mapping[str, str]] = {GROUP: KIND, "kubescheduler.config.k8s.io": CONFIG_KIND}
_OURS: Final = (*_KIND_OF, *_KIND_OF.values())
_NAME: Final = re.compile(r"(?=.{1,253}$)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
#: Fields of a configuration that apply to all of its profiles, by their path in a profile.
_FOR_ALL: Final[Mapping[str, str]] = {
    "spec.backoff.initialSeconds": "podInitialBackoffSeconds",
    "spec.backoff.maxSeconds": "podMaxBackoffSeconds",
    "spec.extenders": "extenders",
}
_LIMITS: Final[Mapping[str, str]] = {
    "maxItems": "at most {} items",
    "maxProperties": "at most {} entries",
    "maxLength": "at most {} characters",
    "minLength": "at least {} character",
    "pattern": "text that matches {}",
    "enum": "one of {}",
    "minimum": "at least {}",
    "maximum": "at most {}",
    "type": "{}",
}


class ValidationFinding(NamedTuple):
    """One problem and its place; lines and columns of a file begin at 1."""

    file: str
    place: Place
    problem: Problem

    def __str__(self) -> str:
        """One line, in the form of compilers."""
        return printable(f"{self.file}:{self.place.line}:{self.place.column}: {self.problem}")


class Advice(NamedTuple):
    """One recommendation of the condition Advice, and the place of the field that it is about."""

    file: str
    place: Place
    hint: Recommendation

    def __str__(self) -> str:
        """One line, in the form of compilers."""
        return printable(f"{self.file}:{self.place.line}:{self.place.column}: {self.hint.message}")


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of one file.

    Attributes:
        findings: problems, in the order of the text.
        profiles: number of profiles.
        others: number of other objects.
        advice: recommendations about profiles that are right, but perhaps not meant so.
        unreadable: name of the file if it is neither YAML nor JSON and names none of our kinds; else empty.
    """

    findings: tuple[ValidationFinding, ...]
    profiles: int = 0
    others: int = 0
    advice: tuple[Advice, ...] = ()
    unreadable: str = ""


class _Manifest(NamedTuple):
    """A profile of the set, with its place; `path` leads to an item of a List."""

    profile: SchedulingProfile
    path: str
    node: YamlNode


@dataclass(slots=True)
class _Notes:
    """The findings in one file so far."""

    file: str
    around: Surroundings
    problems: list[tuple[Problem, YamlNode]] = field(default_factory=list)
    advice: list[tuple[Recommendation, str, YamlNode]] = field(default_factory=list)
    profiles: int = 0
    others: int = 0
    manifests: list[_Manifest] = field(default_factory=list)

    def add(self, problems: Iterable[Problem], node: YamlNode) -> None:
        """Note problems of a document, each once."""
        self.problems += ((problem, node) for problem in dict.fromkeys(problems))


def check_file(text: str, file: str, catalogue: Catalogue) -> Checked:
    """Check YAML or JSON text by itself."""
    (checked,) = check_files([(text, file)], catalogue)
    return checked


def check_files(
    files: Iterable[tuple[str, str]],
    catalogue: Catalogue,
    cluster: Iterable[SchedulingProfile] = (),
    around: Surroundings = UNKNOWN_SURROUNDINGS,
) -> list[Checked]:
    """Check YAML or JSON texts, whose profiles are to be in one cluster.

    Args:
        files: text and name of each; the name is for findings.
        catalogue: the plugins that exist here.
        cluster: profiles that are there already. A profile of the files takes the place of its namesake.
        around: that cluster, for advice.

    Returns:
        Problems, counts and advice of each file.
    """
    noted = [_noted(text, file, catalogue, around) for text, file in files]
    _check_together([notes for notes in noted if isinstance(notes, _Notes)], cluster)
    return [notes if isinstance(notes, Checked) else _checked(notes) for notes in noted]


def _noted(text: str, file: str, catalogue: Catalogue, around: Surroundings) -> _Notes | Checked:
    notes = _Notes(file, around)
    try:
        documents = parse_placed(text) if text.strip() else []
    except UnreadableDocument as error:
        if not any(word in text for word in _OURS):
            return Checked((), unreadable=file)  # a template, or another format, without any of our kinds in it
        (problem,) = error.problems
        return Checked((ValidationFinding(file, Place(error.line or 1, error.column or 1), problem._replace(path="")),))
    for document in documents:
        _check(document.value, "", document, catalogue, notes)
    return notes


def _checked(notes: _Notes) -> Checked:
    findings = (ValidationFinding(notes.file, _place(problem, node), problem) for problem, node in notes.problems)
    advice = tuple(Advice(notes.file, place_of(path, node), hint) for hint, path, node in notes.advice)
    return Checked(tuple(sorted(findings, key=lambda finding: finding.place)), notes.profiles, notes.others, advice)


def _check_together(files: Sequence[_Notes], cluster: Iterable[SchedulingProfile]) -> None:
    """Note profiles that have one name, or can select one pod with the same priority. The later one gets the note."""
    named = {manifest.profile.metadata.name for notes in files for manifest in notes.manifests}
    earlier = [("in the cluster", profile) for profile in cluster if profile.metadata.name not in named]
    for notes in files:
        for profile, path, node in notes.manifests:
            found = list(_beside(profile, [(where if where != notes.file else "", each) for where, each in earlier]))
            notes.add((problem.inside(path) if path else problem for problem in found), node)
            earlier.append((notes.file, profile))


def _beside(profile: SchedulingProfile, earlier: Sequence[tuple[str, SchedulingProfile]]) -> Iterator[Problem]:
    """Find problems of a profile beside earlier ones, each with its file. The file is empty if both are in it. One of a kind is enough."""
    meta, spec = profile.metadata, profile.spec
    namesake = next((where for where, other in earlier if other.metadata.name == meta.name), None)
    if namesake is not None:
        yield Problem("metadata.name", in_json(meta.name), f"each name once{_also(namesake)}")
    live = [(where, other) for where, other in earlier if not other.spec.is_shadow and other.metadata.name != meta.name]
    if spec.is_shadow:
        return
    taken = next((where for where, other in live if spec.scheduler_name and other.spec.scheduler_name == spec.scheduler_name), None)
    if taken is not None:
        allowed = f"each schedulerName once: the older of two profiles would win{_also(taken)}"
        yield Problem("spec.schedulerName", in_json(spec.scheduler_name), allowed)
    for where, other in live:
        if spec.pods is not None and other.spec.pods is not None and rivals({"": spec.pods, other.metadata.name: other.spec.pods}):
            allowed = (
                f"another priority than profile {in_json(other.metadata.name)} has{_also(where)}, or selectors that exclude each other"
            )
            yield Problem("spec.pods.priority", f"{spec.pods.priority or 0}, with which both can select one pod", allowed)
            return


def _also(where: str) -> str:
    return f" ({where})" if where else ""


def _place(problem: Problem, node: YamlNode) -> Place:
    """Return the place of the wrong value, or of the name, if the name is wrong."""
    last = problem.path.rpartition(".")[2]
    name_is_wrong = problem.found == UNKNOWN_FIELD or problem.found == in_json(last) or problem.path.endswith(problem.found.strip('"'))
    return place_of(problem.path, node, value=not name_is_wrong)


def check_object(new: Mapping[str, Any], old: Mapping[str, Any] | None, catalogue: Catalogue) -> list[Problem]:
    """Check a SchedulingProfile that is to be stored.

    A change that leaves `spec` as it was is accepted: the labels of a bad profile can be edited, and it can be deleted.

    Args:
        new: the object.
        old: the object that it replaces; None for a new one.
        catalogue: the plugins that exist here.
    """
    # Only changes of the spec are judged: a profile that this build refuses must stay open to changes of labels and finalizers.
    if old is not None and old.get("spec") == new.get("spec"):
        return []
    try:
        (profile,) = read_profiles(new, "")
        resolve(profile, catalogue)
    except ProfileError as error:
        return list(error.problems)
    former = (old or {}).get("spec") or {}
    mode = former.get("mode", LIVE) if former else profile.spec.mode
    name = profile.spec.scheduler_name
    former_name = former.get("schedulerName", name) if name else name  # a shadow need not have one
    return [*check_same_name(name, former_name), *check_same_mode(profile.spec.mode, mode)]


def _check(value: Any, path: str, document: Document, catalogue: Catalogue, notes: _Notes) -> None:
    """Check one object; `path` leads to an item of a List."""
    if isinstance(value, Mapping) and value.get("kind") == "List" and isinstance(value.get("items"), list):
        for index, item in enumerate(value["items"]):
            _check(item, f"items[{index}]", document, catalogue, notes)
        return
    group = str(value.get("apiVersion")).partition("/")[0] if isinstance(value, Mapping) else ""
    if group not in _KIND_OF and not (isinstance(value, Mapping) and value.get("kind") in _KIND_OF.values()):
        notes.others += 1
        return
    problems = _problems(value, group, path, document, catalogue, notes)
    notes.add((problem.inside(path) if path else problem for problem in problems), document.node)


def _problems(
    value: Mapping[str, Any], group: str, path: str, document: Document, catalogue: Catalogue, notes: _Notes
) -> Iterator[Problem]:
    """Find the problems of one object of ours, with paths inside it. Note its manifest, and advice if it is correct."""
    allowed = _KIND_OF.get(group)
    if allowed and value.get("kind") != allowed:
        yield Problem("kind", in_json(value.get("kind")), f"{allowed}{did_you_mean(str(value.get('kind')), [allowed])}")
        return
    try:
        profiles = _read(value, catalogue)
    except ProfileError as error:
        notes.profiles += 1
        yield from error.problems
        return
    notes.profiles += len(profiles)
    for index, profile in enumerate(profiles):
        resolved, found = None, list[Problem]()
        try:
            resolved = resolve(profile, catalogue)
        except ProfileError as error:
            found += error.problems
        # A configuration gets no advice: it is kube-scheduler's own, or becomes manifests first.
        if value["kind"] == CONFIG_KIND:
            yield from (problem._replace(path=_in_configuration(problem.path, index, value)) for problem in found)
            continue
        notes.manifests.append(_Manifest(profile, path, document.node))
        problems = [*found, *_of_manifest(value, profile, found)]
        yield from problems
        if resolved is not None and not problems:
            hints = advise_beforehand(resolved, catalogue, notes.around)
            notes.advice += ((hint, f"{path}.{hint.path}" if path else hint.path, document.node) for hint in hints)


def _read(value: Mapping[str, Any], catalogue: Catalogue) -> list[SchedulingProfile]:
    """Read the profiles of a manifest or a configuration; older ones are read as by `placewright run --config` and `convert`."""
    # Older versions have other defaults, which only the conversion knows.
    if value["kind"] == CONFIG_KIND and value.get("apiVersion") != CONFIG_API_VERSION:
        profiles, _ = read_configuration(value, catalogue, ConversionFindings())
        refuse_repeated_names(profiles)
        return profiles
    return read_profiles(value, "")


def _of_manifest(value: Mapping[str, Any], profile: SchedulingProfile, found: list[Problem]) -> Iterator[Problem]:
    """Find the problems that only the API server would find."""
    name = profile.metadata.name
    if not _NAME.fullmatch(name):
        yield Problem("metadata.name", in_json(name), "lower case letters, digits, '-' and '.', as in the name of a host")
    # The schema would repeat our own findings in other words.
    if not found:
        yield from _of_schema(_without_nulls(value))


def _of_schema(manifest: Any) -> Iterator[Problem]:
    for error in _validator().iter_errors(manifest):
        path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path).lstrip(".")
        limit = _LIMITS.get(str(error.validator))
        value: Any = error.instance
        # The number instead of the value: a list beyond a limit is longer than a person reads.
        found = f"{len(value)} of them" if error.validator in ("maxItems", "maxProperties") else in_json(value)
        yield Problem(path, found, limit.format(error.validator_value) if limit else f"something else: {error.message[:200]}")


@cache
def _validator() -> jsonschema.protocols.Validator:
    return jsonschema.Draft202012Validator(json_schema())


def _without_nulls(value: Any) -> Any:
    """Remove nulls: null means absent, as for the operator."""
    if isinstance(value, Mapping):
        return {str(key): _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _in_configuration(path: str, index: int, value: Mapping[str, Any]) -> str:
    """Translate the path of a profile's field into one of a KubeSchedulerConfiguration."""
    for ours, theirs in _FOR_ALL.items():
        if path.startswith(ours):
            return theirs + path.removeprefix(ours)
    name = path.removeprefix("spec.")
    profiles = value.get("profiles") or [{}]
    own = profiles[index] if index < len(profiles) and isinstance(profiles[index], Mapping) else {}
    if name in value and name not in own:
        return name
    return f"profiles[{index}].{name}" if own else name
