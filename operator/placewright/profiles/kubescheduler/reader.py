"""Reads any file about placing pods as SchedulingProfiles, with a list of the settings that have no counterpart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from placewright.api.bad_input import in_json
from placewright.api.profile import DEFAULT_SCHEDULER_NAME, KIND, SchedulingProfile
from placewright.profiles.check import count_values
from placewright.profiles.config import API_VERSION, CONFIG_KIND, read_manifest, refuse_repeated_names
from placewright.profiles.defaults import Catalogue
from placewright.profiles.documents import parse_documents
from placewright.profiles.kubescheduler.configuration import read_configuration
from placewright.profiles.kubescheduler.findings import ConversionFinding, ConversionFindings
from placewright.profiles.kubescheduler.process import ProcessSettings
from placewright.profiles.kubescheduler.rewrites import POLICY_KIND, legacy
from placewright.profiles.problem import Problem, ProfileError
from placewright.profiles.resolve import resolve

_KINDS: Final = f"{KIND}, {CONFIG_KIND} or {POLICY_KIND}"
#: aks.azure.com/v1alpha1, whose `spec.rawConfig` is the text of a KubeSchedulerConfiguration.
_AKS_KIND: Final = "SchedulerConfiguration"
_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9.-]+")
_DOTS: Final = re.compile(r"[.-]*\.[.-]*")
_LONGEST_NAME: Final = 253
#: Values in a document, each alias counted as if written out; a configuration has hundreds.
_MOST_VALUES: Final = 100_000


@dataclass(frozen=True, slots=True)
class Conversion:
    """The result of a file.

    Attributes:
        profiles: each of them resolves.
        settings: settings of the process, which manifests of profiles cannot hold.
        findings: settings without a counterpart, or in another form.
    """

    profiles: tuple[SchedulingProfile, ...]
    settings: ProcessSettings
    findings: tuple[ConversionFinding, ...]


def convert(text: str, source: str, catalogue: Catalogue) -> Conversion:
    """Read YAML or JSON.

    Raises:
        ProfileError: the text cannot be read, or gives a profile that would not be accepted; one line a problem.
    """
    findings = ConversionFindings()
    try:
        read = [_read(document, catalogue, findings) for document in _documents(parse_documents(text))]
        profiles = _with_object_names(profile for some, _ in read for profile in some)
        refuse_repeated_names(profiles)
        for profile in profiles:
            _check(profile, catalogue)
    except ProfileError as error:
        raise ProfileError(error.problems, source) from None
    said = next((settings for _, settings in read if settings != ProcessSettings()), ProcessSettings())
    return Conversion(tuple(profiles), said, findings.all())


def _documents(documents: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    """Yield documents, items of lists, and configurations in ConfigMaps and in SchedulerConfigurations of AKS."""
    for document in documents:
        _refuse_endless(document)
        if not isinstance(document, Mapping):
            raise ProfileError([Problem("", in_json(document), f"an object of kind {_KINDS}")])
        kind = document.get("kind")
        if kind == "List" and isinstance(document.get("items"), list):
            yield from _documents(document["items"])
        elif kind == "ConfigMap" and isinstance(document.get("data"), Mapping):
            for text in document["data"].values():
                yield from _documents(parse_documents(str(text)))
        elif kind == _AKS_KIND:
            spec = document.get("spec")
            if isinstance(spec, Mapping) and spec.get("rawConfig"):
                yield from _documents(parse_documents(str(spec["rawConfig"])))
        else:
            yield document


def _refuse_endless(document: Any) -> None:
    """Refuse a document that aliases make endless: it is written out in full later."""
    if count_values(document, _MOST_VALUES) >= _MOST_VALUES:
        raise ProfileError([Problem("", f"more than {_MOST_VALUES} values, aliases written out", "a configuration")])


def _read(
    document: Mapping[str, Any], catalogue: Catalogue, findings: ConversionFindings
) -> tuple[list[SchedulingProfile], ProcessSettings]:
    kind = document.get("kind")
    if kind == CONFIG_KIND:
        return read_configuration(document, catalogue, findings)
    if kind == POLICY_KIND:
        return [legacy(POLICY_KIND, "kind")(document, catalogue, findings)], ProcessSettings()
    if kind == KIND:
        if document.get("apiVersion") != API_VERSION:
            raise ProfileError([Problem("apiVersion", in_json(document.get("apiVersion")), API_VERSION)])
        return [_with_scheduler_name(read_manifest(document), findings)], ProcessSettings()
    raise ProfileError([Problem("kind", in_json(kind), _KINDS)])


def _with_scheduler_name(profile: SchedulingProfile, findings: ConversionFindings) -> SchedulingProfile:
    """Add the schedulerName that older versions assumed."""
    if profile.spec.scheduler_name or profile.spec.is_shadow:
        return profile
    said = f"{DEFAULT_SCHEDULER_NAME}, which went without saying in older versions; no kube-scheduler may place these pods, too"
    findings.note(f"profile {profile.metadata.name}: spec.schedulerName", said)
    return msgspec.structs.replace(profile, spec=msgspec.structs.replace(profile.spec, scheduler_name=DEFAULT_SCHEDULER_NAME))


def _with_object_names(profiles: Iterable[SchedulingProfile]) -> list[SchedulingProfile]:
    """Turn the names in files, which need not be names of objects, into such names; refuse a file without profiles."""
    named: dict[str, SchedulingProfile] = {}
    for profile in profiles:
        wanted = object_name(profile.metadata.name)
        name, number = wanted, 2
        while name in named:
            name, number = f"{wanted}-{number}", number + 1
        metadata = msgspec.structs.replace(profile.metadata, name=name)
        named[name] = msgspec.structs.replace(profile, metadata=metadata)
    if not named:
        raise ProfileError([Problem("", "nothing that says how pods are placed", f"an object of kind {_KINDS}")])
    return list(named.values())


def object_name(text: str) -> str:
    """Turn a text into a name that the API server accepts.

    Returns:
        A DNS subdomain name, as similar as possible.
    """
    return _DOTS.sub(".", _NOT_IN_NAMES.sub("-", text.lower()))[:_LONGEST_NAME].strip("-.") or "profile"


def _check(profile: SchedulingProfile, catalogue: Catalogue) -> None:
    try:
        resolve(profile, catalogue)
    except ProfileError as error:
        raise ProfileError(problem.inside(f"profile {in_json(profile.spec.scheduler_name)}") for problem in error.problems) from None
