"""Writes SchedulingProfiles as a KubeSchedulerConfiguration v1, for simulators, cluster-autoscaler, and the way back to kube-scheduler.

The preset and `spec.weights` are folded into weights and arguments of plugins. Settings that a configuration cannot hold are listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from placewright.api.bad_input import in_json
from placewright.api.extenders import ExtenderSpec
from placewright.api.profile import DECIDING, Backoff, ProfileSpec, SchedulingProfile
from placewright.framework.runtime.resolvedprofile import ExtensionPoint, Origin, ResolvedProfile
from placewright.profiles.config import CONFIG_API_VERSION, CONFIG_KIND
from placewright.profiles.defaults import DEFAULT_PLUGINS, Catalogue
from placewright.profiles.effective import changed_settings, plain
from placewright.profiles.kubescheduler.documents import Document, stated_plugins
from placewright.profiles.kubescheduler.draft import PRE_SCORE, SCORE, Draft
from placewright.profiles.kubescheduler.findings import ConversionFinding, ConversionFindings
from placewright.profiles.kubescheduler.history import GONE
from placewright.profiles.presets import find_preset, preset_weights, with_preset
from placewright.profiles.resolve import resolve

#: Points with weights.
_WEIGHED: Final = ("multi_point", SCORE)
#: Fields of `spec` that a configuration holds, that are folded into it, or that have a finding of their own. Every other field is listed
#: where it is set.
_HELD_FIELDS: Final = frozenset({
    "schedulerName", "preset", "plugins", "pluginConfig", "percentageOfNodesToScore", "weights", "backoff", "extenders", "paused", "mode",
    "shadows", "shadow",
})  # fmt: skip
#: The same, and the fields within `backoff` that a configuration holds.
_HELD: Final = _HELD_FIELDS | {"backoff.initialSeconds", "backoff.maxSeconds"}
_ADDED: Final = (Origin.WEIGHTS, Origin.PRESET)


def to_configuration(profiles: Sequence[SchedulingProfile], catalogue: Catalogue) -> tuple[Document, tuple[ConversionFinding, ...]]:
    """Write one configuration for all profiles.

    Returns:
        (plain data, the settings that it cannot hold).

    Raises:
        ProfileError: a profile does not resolve.
    """
    findings = ConversionFindings()
    for shadow in (profile for profile in profiles if profile.spec.is_shadow):
        findings.note(f"profile {shadow.metadata.name}", "is left out: it is a shadow, and kube-scheduler has none")
    profiles = [profile for profile in profiles if not profile.spec.is_shadow]
    configured = [_profile(profile, catalogue, findings) for profile in profiles]
    document: Document = {"apiVersion": CONFIG_API_VERSION, "kind": CONFIG_KIND}
    document |= _backoff(profiles, findings)
    document["profiles"] = configured
    if extenders := _extenders(profiles, findings):
        document["extenders"] = msgspec.to_builtins(extenders)
    return document, findings.all()


def _profile(profile: SchedulingProfile, catalogue: Catalogue, findings: ConversionFindings) -> Document:
    spec, path = profile.spec, f"profile {profile.metadata.name or profile.spec.scheduler_name}"
    resolved = resolve(profile, catalogue)
    draft = Draft(spec.plugins, with_preset(spec.plugin_config or (), find_preset(spec.preset), catalogue))
    _state_added(draft, spec, resolved)
    _state_weights(draft, catalogue)
    _fold_weights(draft, profile, resolved, catalogue)
    _leave_out_gone(draft, resolved, path, findings)
    _note_own(resolved, path, findings)
    # A placement and not a setting: with this file kube-scheduler starts to place pods that wait today.
    if spec.paused:
        findings.placement(path, "paused: a kube-scheduler with this file takes pods")
    _note_beyond(spec, path, findings)
    if profile.metadata.name not in ("", spec.scheduler_name):
        findings.note(path, f"is called by its schedulerName, {spec.scheduler_name}, there")
    document: Document = {"schedulerName": spec.scheduler_name}
    if spec.percentage_of_nodes_to_score is not None:
        document["percentageOfNodesToScore"] = spec.percentage_of_nodes_to_score
    if plugins := stated_plugins(draft.plugins()):
        document["plugins"] = plugins
    if draft.args:
        document["pluginConfig"] = [{"name": name, "args": args} if args else {"name": name} for name, args in draft.args.items()]
    return document


# --- weights ---------------------------------------------------------------------------------------------------------------


def _state_added(draft: Draft, spec: ProfileSpec, resolved: ResolvedProfile) -> None:
    """Name the plugins that a preset adds, because kube-scheduler has no presets, except the plugins that the profile switches off.

    They run right after the default plugins, so before all other plugins of the profile.
    """
    # In reverse, because each one is put before all others.
    for name in reversed(find_preset(spec.preset).adds):
        if name in resolved.plugin_names and not draft.multi_point.drops(name):
            draft.multi_point.lead(name)


def _state_weights(draft: Draft, catalogue: Catalogue) -> None:
    """Write default weights of installed plugins: without a weight kube-scheduler takes 1, and here the author's default counts."""
    for field in _WEIGHED:
        each = draft.sets[field]
        for ref in list(each.enabled):
            if not ref.weight and ref.name not in DEFAULT_PLUGINS and _scores(catalogue, ref.name):
                each.enable(ref.name, catalogue[ref.name].default_weight)


def _fold_weights(draft: Draft, profile: SchedulingProfile, resolved: ResolvedProfile, catalogue: Catalogue) -> None:
    """Write the preset's weights and `spec.weights` into the plugin lists of a configuration."""
    spec = profile.spec
    for name, weight in (preset_weights(find_preset(spec.preset), spec.plugins) | (spec.weights or {})).items():
        if weight == 0 and _scores(catalogue, name):
            _silence(draft, name, catalogue)
    for name, weight in resolved.weights.items():
        if resolved.origins.weights[name] in _ADDED:
            chosen = draft.score if name in draft.score.names() else draft.multi_point
            chosen.enable(name, weight)


def _silence(draft: Draft, name: str, catalogue: Catalogue) -> None:
    """Switch a plugin's scoring off, and nothing else of it."""
    for field, point in ((PRE_SCORE, ExtensionPoint.PRE_SCORE), (SCORE, ExtensionPoint.SCORE)):
        if point.implemented_by(catalogue[name]):
            draft.sets[field].disable(name)


def _scores(catalogue: Catalogue, name: str) -> bool:
    return name in catalogue and ExtensionPoint.SCORE.implemented_by(catalogue[name])


# --- what it cannot hold ---------------------------------------------------------------------------------------------------


def _leave_out_gone(draft: Draft, resolved: ResolvedProfile, path: str, findings: ConversionFindings) -> None:
    for name in resolved.plugin_names:
        if name in GONE:
            findings.placement(path, f"plugin {name}: kube-scheduler does not have it any more")
    draft.forget(GONE)


def _note_beyond(spec: ProfileSpec, path: str, findings: ConversionFindings) -> None:
    """List what is set and kube-scheduler has no field for, one line each. A field by which placements differ is a loss of placement."""
    spec = replace(spec, fairness=spec.settings.fairness)  # what changes nothing is no loss
    changed = {setting.what: setting.after for setting in changed_settings(spec) if setting.what not in _HELD}
    said, unsaid = plain(spec), plain(ProfileSpec())
    told = {what.partition(".")[0] for what in changed} | _HELD_FIELDS
    changed |= {name: value for name, value in said.items() if name not in told and value != unsaid.get(name)}
    for what, value in _one_by_one(changed):
        note = findings.placement if what.partition(".")[0] in DECIDING else findings.setting
        note(path, f"{what} {in_json(value)}: kube-scheduler has no such setting")


def _one_by_one(settings: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield each setting. A field with fields of its own yields each of these."""
    for what, value in settings.items():
        if isinstance(value, Mapping) and "." not in what:
            yield from ((f"{what}.{name}", each) for name, each in value.items())
        else:
            yield what, value


def _note_own(resolved: ResolvedProfile, path: str, findings: ConversionFindings) -> None:
    own = [name for name in resolved.plugin_names if name not in DEFAULT_PLUGINS and name not in GONE]
    for name in own:
        findings.note(path, f"plugin {name}: needs a kube-scheduler with it built in")
    fields: Mapping[str, Origin] = resolved.origins.args.get("VolumeBinding", {})
    if "shape" in fields:
        findings.note(path, "VolumeBinding.shape needs kube-scheduler's feature gate StorageCapacityScoring")


def _backoff(profiles: Iterable[SchedulingProfile], findings: ConversionFindings) -> dict[str, Any]:
    """Return the backoff of a configuration, which has one for all profiles, in whole seconds: the first profile's that it can hold."""
    chosen: Backoff | None = None
    for profile in profiles:
        backoff = profile.spec.backoff
        chosen = chosen or (backoff if _holds(backoff) else None)
        if backoff != chosen:
            text = f"backoff of {backoff.initial_seconds:g} s to {backoff.max_seconds:g} s"
            findings.setting(
                f"profile {profile.metadata.name or profile.spec.scheduler_name}",
                f"{text}: there is one for all profiles, in whole seconds from 1 on",
            )
    if chosen is None or chosen == Backoff():
        return {}
    return {"podInitialBackoffSeconds": int(chosen.initial_seconds), "podMaxBackoffSeconds": int(chosen.max_seconds)}


def _holds(backoff: Backoff) -> bool:
    # kube-scheduler's fields are whole numbers from 1 on. It refuses a maximum of 0, which switches backoff off here.
    initial, maximum = backoff.initial_seconds, backoff.max_seconds
    return initial == int(initial) >= 1 and maximum == int(maximum) >= initial


def _extenders(profiles: Sequence[SchedulingProfile], findings: ConversionFindings) -> list[ExtenderSpec]:
    """Return the extenders of a configuration, which has one list for all profiles: the profiles' list, where they agree."""
    first = profiles[0].spec.extenders or [] if profiles else []
    if all((profile.spec.extenders or []) == first for profile in profiles):
        return first
    for profile in profiles:
        for extender in profile.spec.extenders or ():
            text = f"extender {extender.url_prefix} is left out: there is one list for all profiles, and these differ"
            findings.placement(f"profile {profile.metadata.name or profile.spec.scheduler_name}", text)
    return []
