"""Reads profiles from files: SchedulingProfile manifests, and kube-scheduler's KubeSchedulerConfiguration v1.

Both are read strictly: an unknown or repeated field is refused, as kube-scheduler does. `placewright.profiles.kubescheduler` reads older
versions, which have other defaults, and the legacy Policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from placewright.api.bad_input import in_json
from placewright.api.extenders import ExtenderSpec
from placewright.api.objects import KubeObject, ObjectMeta
from placewright.api.profile import (
    DEFAULT_SCHEDULER_NAME,
    GROUP,
    KIND,
    VERSION,
    Backoff,
    PluginConfig,
    ProfileSpec,
    SchedulingProfile,
)
from placewright.profiles.documents import parse_documents
from placewright.profiles.placements import ConfigPlugins, without_placements
from placewright.profiles.problem import Problem, ProfileError
from placewright.profiles.strictdecode import decode_strict

API_VERSION: Final = f"{GROUP}/{VERSION}"
CONFIG_GROUP: Final = "kubescheduler.config.k8s.io"
CONFIG_API_VERSION: Final = f"{CONFIG_GROUP}/v1"
CONFIG_KIND: Final = "KubeSchedulerConfiguration"
#: Fields of a configuration that no profile has: a person pasted the whole file into `spec`.
_OF_A_CONFIGURATION: Final = frozenset(
    {"profiles", "leaderElection", "clientConnection", "podInitialBackoffSeconds", "podMaxBackoffSeconds"}
)


class ConfigProfile(KubeObject, frozen=True):
    """One profile of a KubeSchedulerConfiguration."""

    scheduler_name: str | None = None
    percentage_of_nodes_to_score: int | None = None
    plugins: ConfigPlugins = ConfigPlugins()
    plugin_config: list[PluginConfig] | None = None


class LeaderElection(KubeObject, frozen=True):
    """Settings of leader election. `placewright run --config` uses `leader_elect`; the other fields have no counterpart."""

    leader_elect: bool | None = None
    lease_duration: str | None = None
    renew_deadline: str | None = None
    retry_period: str | None = None
    resource_lock: str | None = None
    resource_name: str | None = None
    resource_namespace: str | None = None


class ClientConnection(KubeObject, frozen=True):
    """Settings of the connection to the API server. `placewright run --config` uses kubeconfig, qps and burst."""

    kubeconfig: str | None = None
    accept_content_types: str | None = None
    content_type: str | None = None
    qps: float | None = None
    burst: int | None = None


class KubeSchedulerConfiguration(KubeObject, frozen=True):
    """kube-scheduler's configuration file. Fields that are not about profiles are accepted and ignored."""

    api_version: str
    kind: str
    profiles: list[ConfigProfile] | None = None
    percentage_of_nodes_to_score: int | None = None
    pod_initial_backoff_seconds: float | None = None
    pod_max_backoff_seconds: float | None = None
    extenders: list[ExtenderSpec] | None = None
    parallelism: int | None = None
    delay_cache_until_active: bool | None = None
    leader_election: LeaderElection | None = None
    client_connection: ClientConnection | None = None
    enable_profiling: bool | None = None
    enable_contention_profiling: bool | None = None


class _Manifest(KubeObject, frozen=True):
    """A SchedulingProfile as a person wrote it: `metadata` may have fields that are not read here, and `status` is ignored."""

    api_version: str
    kind: str
    metadata: dict[str, Any]
    spec: ProfileSpec = msgspec.field(default_factory=ProfileSpec)
    status: dict[str, Any] | None = None


def read_profiles(document: str | Mapping[str, Any], source: str) -> list[SchedulingProfile]:
    """Read the profiles of a document.

    Reading checks shapes and fields; `resolve` checks plugins and ranges.

        (profile,) = read_profiles(Path("web.yaml").read_text(), "web.yaml")

    Args:
        document: YAML text of one or several documents, or a parsed mapping.
        source: name of the file, for messages.

    Returns:
        The profiles, in the order of the text.

    Raises:
        ProfileError: one line a problem: `source: path: found X; allowed Y`.
    """
    try:
        documents = parse_documents(document) if isinstance(document, str) else [document]
        profiles = [profile for item in documents for profile in _read(item)]
        refuse_repeated_names(profiles)
    except ProfileError as error:
        raise ProfileError(error.problems, source) from None
    return profiles


def _read(document: Any) -> Iterator[SchedulingProfile]:
    if not isinstance(document, Mapping):
        raise ProfileError([Problem("", in_json(document), f"an object of kind {KIND} or {CONFIG_KIND}")])
    version, kind = document.get("apiVersion"), document.get("kind")
    if kind == "List" and isinstance(document.get("items"), list):
        for item in document["items"]:
            yield from _read(item)
    elif kind == KIND:
        _expect("apiVersion", version, API_VERSION)
        yield read_manifest(document)
    elif kind == CONFIG_KIND:
        _expect("apiVersion", version, CONFIG_API_VERSION, " (placewright convert translates older versions)")
        yield from configured_profiles(decode_strict(document, KubeSchedulerConfiguration))
    else:
        hint = " (placewright convert translates a Policy)" if kind == "Policy" else ""
        raise ProfileError([Problem("kind", in_json(kind), f"{KIND} or {CONFIG_KIND}{hint}")])


def _expect(path: str, found: Any, allowed: str, hint: str = "") -> None:
    if found != allowed:
        raise ProfileError([Problem(path, in_json(found), f"{allowed}{hint}")])


def read_manifest(document: Mapping[str, Any]) -> SchedulingProfile:
    """Read one SchedulingProfile manifest.

    Raises:
        ProfileError: a field is unknown or has another type, or the name is missing.
    """
    spec = document.get("spec")
    if isinstance(spec, Mapping) and (spec.get("kind") == CONFIG_KIND or not _OF_A_CONFIGURATION.isdisjoint(spec)):
        allowed = f"the fields of one of its profiles: 'placewright convert FILE' makes SchedulingProfiles of a {CONFIG_KIND}"
        raise ProfileError([Problem("spec", f"a {CONFIG_KIND}", allowed)])
    manifest = decode_strict(document, _Manifest)
    try:
        metadata = msgspec.convert(manifest.metadata, ObjectMeta)
    except msgspec.ValidationError as error:
        raise ProfileError([Problem("metadata", "a wrong value", str(error))]) from None
    if not metadata.name:
        raise ProfileError([Problem("metadata.name", "nothing", "a name")])
    return SchedulingProfile(metadata=metadata, spec=manifest.spec)


def configured_profiles(config: KubeSchedulerConfiguration) -> Iterator[SchedulingProfile]:
    """Turn a configuration into profiles. Settings of the whole configuration fill the fields that a profile leaves open.

    Yields:
        One profile for each of the configuration's.

    Raises:
        ProfileError: a profile beside others has no schedulerName, or groups would be placed in a way that is not supported here.
    """
    profiles = config.profiles or [ConfigProfile()]
    backoff = _backoff(config)
    for index, profile in enumerate(profiles):
        name = profile.scheduler_name
        # One profile without a name is the default scheduler's, as in kube-scheduler; of several, each must say whose pods it takes.
        if name is None and len(profiles) > 1:
            raise ProfileError([Problem(f"profiles[{index}].schedulerName", "nothing", "a name, where there are several profiles")])
        percentage = profile.percentage_of_nodes_to_score
        spec = ProfileSpec(
            scheduler_name=DEFAULT_SCHEDULER_NAME if name is None else name,
            plugins=without_placements(profile.plugins, f"profiles[{index}].plugins"),
            plugin_config=profile.plugin_config,
            percentage_of_nodes_to_score=config.percentage_of_nodes_to_score if percentage is None else percentage,
            backoff=backoff,
            # Extenders belong to a profile here: each one of the file gets them (decision 0001).
            extenders=config.extenders,
        )
        yield SchedulingProfile(metadata=ObjectMeta(name=spec.scheduler_name), spec=spec)


def _backoff(config: KubeSchedulerConfiguration) -> Backoff:
    initial, maximum = config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds
    stated = {"initial_seconds": initial, "max_seconds": maximum}
    return Backoff(**{name: seconds for name, seconds in stated.items() if seconds is not None})


def placing(profiles: Sequence[SchedulingProfile]) -> list[SchedulingProfile]:
    """Choose the profiles that place pods where profiles are tried out.

    Returns:
        The live profiles; all of them if there are only shadows, which then place pods as live profiles do.
    """
    return [profile for profile in profiles if not profile.spec.is_shadow] or list(profiles)


def refuse_repeated_names(profiles: Iterable[SchedulingProfile]) -> None:
    """Refuse two profiles of one schedulerName. In a cluster the older one wins; in a file there is no older one. Shadows claim no name.

    Raises:
        ProfileError: a schedulerName occurs twice.
    """
    seen: set[str] = set()
    for profile in profiles:
        if profile.spec.is_shadow:
            continue
        name = profile.spec.scheduler_name
        if name and name in seen:
            raise ProfileError([Problem("schedulerName", in_json(name), "each schedulerName once")])
        seen.add(name)
