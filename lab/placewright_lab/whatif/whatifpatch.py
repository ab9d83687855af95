"""A change of a profile: the changed profile or its problems, and the patch for people, as YAML, as a kubectl line and as a shadow."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from placewright.api.profile import DECIDING, KIND, SHADOW, SchedulingProfile
from placewright.cli.profiles.profilewrites import merge_patch
from placewright.framework.registry import Registry
from placewright.kube.history import without_keys
from placewright.kube.profileapi import manifest_of
from placewright.profiles.config import read_manifest
from placewright.profiles.difference import Difference, differences
from placewright.profiles.effective import HIDDEN
from placewright.profiles.kubescheduler.documents import stated_spec, yaml_text
from placewright.profiles.presets import find_preset, preset_weights
from placewright.profiles.problem import Problem, ProfileError
from placewright.profiles.resolve import resolve
from placewright.profiles.validation import check_object

Object = dict[str, Any]
#: Names that the API server takes. A line for a shell is written for no other one.
_NAME: Final = re.compile(r"(?=.{1,253}$)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_LONGEST_NAME: Final = 253
_SHADOW_SUFFIX: Final = "-what-if"
#: The name in a manifest of a profile that is no object, such as the default one of a file without profiles.
_UNNAMED: Final = "default"


class ChangedProfile(NamedTuple):
    """A profile as it would be.

    Attributes:
        before: its `spec`, without the fields that have their default.
        after: the same after the change.
        patch: the changed fields, as a merge patch of `spec`.
        problems: why the operator would refuse it; empty for none.
        profile: None where there are problems.
    """

    before: Object
    after: Object
    patch: Object
    problems: tuple[Problem, ...]
    profile: SchedulingProfile | None = None


def shown_spec(profile: SchedulingProfile) -> Object:
    """Return the `spec` of a profile for a form: without the fields that have their default, and without private keys."""
    return without_keys(stated_spec(profile.spec), HIDDEN)


def changed(profile: SchedulingProfile, changes: Mapping[str, Any], registry: Registry) -> ChangedProfile:
    """Change a profile, and check it as the operator does.

    Args:
        profile: as it is.
        changes: a merge patch (RFC 7386) of what `shown_spec` gives.
        registry: of plugins.

    Returns:
        The profile after the change, or its problems.
    """
    before = stated_spec(profile.spec)
    after = _with_keys(merged(without_keys(before, HIDDEN), changes), before)
    name = profile.metadata.name or _UNNAMED
    new, old = manifest_of(name, after), manifest_of(name, before)
    problems = tuple(check_object(new, old, registry))
    if problems:
        return ChangedProfile(before, after, merge_patch(before, after), problems)
    try:
        read = read_manifest(new)
    except ProfileError as error:  # a change that changes nothing is not checked above
        return ChangedProfile(before, after, merge_patch(before, after), tuple(error.problems))
    return ChangedProfile(before, after, merge_patch(before, after), (), SchedulingProfile(metadata=profile.metadata, spec=read.spec))


def merged(value: Any, patch: Any) -> Any:
    """Apply a JSON merge patch (RFC 7386).

    Args:
        value: stays as it is.
        patch: null removes a field.

    Returns:
        The patched value.
    """
    if not isinstance(patch, Mapping):
        return patch
    result = dict(value) if isinstance(value, Mapping) else {}
    for key, each in patch.items():
        if each is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), each)
    return result


def _with_keys(spec: Object, before: Mapping[str, Any]) -> Object:
    """Put private keys back that `shown_spec` hid, by the extender's address."""
    known = {each.get("urlPrefix"): (each.get("tlsConfig") or {}).get("keyData") for each in before.get("extenders") or ()}
    extenders = spec.get("extenders")
    if not isinstance(extenders, list) or not any(known.values()):
        return spec
    return {**spec, "extenders": [_with_key(each, known) for each in extenders]}


def _with_key(extender: Any, known: Mapping[Any, Any]) -> Any:
    tls = extender.get("tlsConfig") if isinstance(extender, Mapping) else None
    if not isinstance(tls, Mapping) or tls.get("keyData") != HIDDEN:
        return extender
    return {**extender, "tlsConfig": {**tls, "keyData": known.get(extender.get("urlPrefix"))}}


# --- to take along -----------------------------------------------------------------------------------------------------------------


def taken_along(profile: SchedulingProfile, made: ChangedProfile, registry: Registry) -> Object:
    """Write a change for people: what differs in effect, and texts to copy. Private keys are in none of them.

    Args:
        profile: as it is.
        made: of the profile, without problems.
        registry: of plugins.

    Returns:
        `differences` as rows of what, before and after; `patch` and `yaml` with the changed fields alone; `kubectl`, empty where the name
        is none that an API server takes; `shadow`, the manifest of a profile that tries the change beside the live one, empty where that
        cannot be. Where nothing changes, all of them are empty.
    """
    assert made.profile is not None
    patch = {"spec": without_keys(made.patch, HIDDEN)}
    return {
        "differences": [list(each) for each in _differences(profile, made.profile, registry)],
        "patch": patch if made.patch else {},
        "yaml": yaml_text(patch) if made.patch else "",
        "kubectl": kubectl_line(profile.metadata.name, patch) if made.patch else "",
        "shadow": yaml_text(shadow_manifest(profile, made)) if made.patch and can_be_shadowed(profile) else "",
    }


def kubectl_line(name: str, patch: Mapping[str, Any]) -> str:
    """Write the command that applies a patch, for a shell.

    Args:
        name: of the profile.
        patch: of the whole object.

    Returns:
        The line, ASCII; empty where no API server takes the name.
    """
    if not _NAME.fullmatch(name):
        return ""
    return shlex.join(["kubectl", "patch", KIND.lower(), name, "--type=merge", "-p", json.dumps(patch)])


def can_be_shadowed(profile: SchedulingProfile) -> bool:
    """Whether a shadow can stand beside a profile: it is an object, and no shadow itself."""
    return bool(profile.metadata.name) and not profile.spec.is_shadow


def shadow_manifest(profile: SchedulingProfile, made: ChangedProfile) -> Object:
    """Build a shadow that decides with the changed profile's settings beside the live one.

    A shadow tries what decides where a pod goes, and nothing else of the change: see docs/shadow.md.

    Args:
        profile: the live one.
        made: its change.

    Returns:
        The manifest.
    """
    name = profile.metadata.name
    spec = {"mode": SHADOW, "shadows": name} | {field: made.after[field] for field in DECIDING if field in made.after}
    return manifest_of(f"{name[: _LONGEST_NAME - len(_SHADOW_SUFFIX)]}{_SHADOW_SUFFIX}", spec)


def _differences(before: SchedulingProfile, after: SchedulingProfile, registry: Registry) -> tuple[Difference, ...]:
    """Return the differences in effect; none where the profile of before cannot be used."""
    try:
        known = resolve(before, registry)
    except ProfileError:
        return ()
    return differences(known, resolve(after, registry))


def settable_weights(profile: SchedulingProfile, registry: Registry) -> dict[str, int]:
    """Find the plugins whose weight can be set, with the weights in effect.

    Args:
        profile: as it is.
        registry: of plugins.

    Returns:
        Weight by plugin, 0 for one that does not score; the plugins that score come first, by weight. Empty for a profile with problems.
    """
    try:
        weights = dict(resolve(profile, registry).weights)
    except ProfileError:
        return {}
    spec = profile.spec
    stated = preset_weights(find_preset(spec.preset), spec.plugins) | (spec.weights or {})
    off = [name for name, weight in stated.items() if not weight and _weighs(profile, name, registry)]
    return dict(sorted(weights.items(), key=lambda item: -item[1])) | dict.fromkeys(off, 0)


def _weighs(profile: SchedulingProfile, plugin: str, registry: Registry) -> bool:
    """Whether the profile would be right with a weight for a plugin that a weight of 0 switches off: it runs, and scores."""
    weights = (profile.spec.weights or {}) | {plugin: 1}
    try:
        return plugin in resolve(replace(profile, spec=replace(profile.spec, weights=weights)), registry).weights
    except ProfileError:
        return False
