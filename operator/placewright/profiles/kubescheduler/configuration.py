"""Reads KubeSchedulerConfiguration, v1 or v1beta1 to v1beta3, as profiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from placewright.api.bad_input import in_json
from placewright.api.profile import SchedulingProfile
from placewright.profiles.config import (
    CONFIG_API_VERSION,
    CONFIG_GROUP,
    ConfigProfile,
    KubeSchedulerConfiguration,
    configured_profiles,
)
from placewright.profiles.defaults import DEFAULT_PLUGINS, PACKAGES, Catalogue
from placewright.profiles.kubescheduler.draft import Draft
from placewright.profiles.kubescheduler.findings import ConversionFindings, not_installed
from placewright.profiles.kubescheduler.history import BETAS
from placewright.profiles.kubescheduler.process import OlderConfiguration, ProcessSettings, process_settings
from placewright.profiles.kubescheduler.rewrites import COSCHEDULING, replace_coscheduling, upgrade
from placewright.profiles.placements import ConfigPlugins, without_placements
from placewright.profiles.problem import Problem, ProfileError, did_you_mean
from placewright.profiles.strictdecode import decode_strict

_OLDER: Final = {f"{CONFIG_GROUP}/{version}": version for version in BETAS}
#: Points that need a plugin: without the profile's own one, the default one runs.
_NEEDED: Final = ("queue_sort", "bind")


def read_configuration(
    document: Mapping[str, Any], catalogue: Catalogue, findings: ConversionFindings
) -> tuple[list[SchedulingProfile], ProcessSettings]:
    """Read a configuration. A plugin that is unknown here is left out, with a finding.

    Raises:
        ProfileError: it cannot be read.
    """
    version = document.get("apiVersion")
    if not isinstance(version, str) or (version != CONFIG_API_VERSION and version not in _OLDER):
        raise ProfileError([Problem("apiVersion", in_json(version), f"{CONFIG_API_VERSION} or one of {', '.join(_OLDER)}")])
    older = _OLDER.get(version)
    config: KubeSchedulerConfiguration = decode_strict(document, OlderConfiguration if older else KubeSchedulerConfiguration)
    settings = process_settings(config, findings)
    profiles = config.profiles or [ConfigProfile()]
    rewritten = [_rewritten(profile, older, f"profiles[{i}]", catalogue, findings) for i, profile in enumerate(profiles)]
    _note_percentage(config, findings)
    return list(configured_profiles(msgspec.structs.replace(config, profiles=rewritten))), settings


def _rewritten(profile: ConfigProfile, older: str | None, path: str, catalogue: Catalogue, findings: ConversionFindings) -> ConfigProfile:
    draft = Draft(without_placements(profile.plugins, f"{path}.plugins", findings.setting), profile.plugin_config)
    _refuse_repeated_configs(profile, path)
    if older:
        upgrade(draft, older, path, findings)
    if COSCHEDULING not in catalogue:
        replace_coscheduling(draft, path, findings)
    drop_unknown(draft, path, catalogue, findings)
    plugins = ConfigPlugins(**msgspec.structs.asdict(draft.plugins()))
    return msgspec.structs.replace(profile, plugins=plugins, plugin_config=draft.plugin_config())


def _refuse_repeated_configs(profile: ConfigProfile, path: str) -> None:
    """Refuse a second entry of one plugin: a draft holds one a plugin, and would silently keep the second."""
    seen: set[str] = set()
    for i, config in enumerate(profile.plugin_config or ()):
        if config.name in seen:
            raise ProfileError([Problem(f"{path}.pluginConfig[{i}].name", in_json(config.name), "one entry for each plugin")])
        seen.add(config.name)


def drop_unknown(draft: Draft, path: str, catalogue: Catalogue, findings: ConversionFindings) -> None:
    """Remove plugins that neither this build nor kube-scheduler has, with a finding each."""
    for point, each in draft.points():
        for name in each.names():
            if name not in catalogue:
                findings.placement(f"{path}.plugins.{point}.enabled", _unknown(name, catalogue))
    for name in draft.args:
        if name not in catalogue and name not in DEFAULT_PLUGINS:
            findings.placement(f"{path}.pluginConfig", _unknown(name, catalogue))
    for name, each in draft.sets.items():
        before = len(each.enabled)
        each.enabled = [ref for ref in each.enabled if ref.name in catalogue]
        each.disabled = [one for one in each.disabled if one == "*" or one in catalogue or one in DEFAULT_PLUGINS]
        if name in _NEEDED and before and not each.enabled:
            each.disabled = []
    draft.args = {name: args for name, args in draft.args.items() if name in catalogue or name in DEFAULT_PLUGINS}


def _unknown(name: str, catalogue: Catalogue) -> str:
    if name in PACKAGES:
        return not_installed(name)
    if name in DEFAULT_PLUGINS:
        return f"{name}: this version does not have it yet"
    hint: Sequence[str] = did_you_mean(name, catalogue)
    return f"{name}: no plugin of this name is installed here{hint}; it is left out"


def _note_percentage(config: KubeSchedulerConfiguration, findings: ConversionFindings) -> None:
    said = [config.percentage_of_nodes_to_score, *(profile.percentage_of_nodes_to_score for profile in config.profiles or ())]
    if 0 in said:
        findings.note("percentageOfNodesToScore", "0: here all nodes are looked at, where kube-scheduler takes fewer in a large cluster")
