"""A change of a profile: the changed profile or its problems, and the patch as YAML, as a kubectl line and as a shadow."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from kubesandbox.edits.patches import merge
from placewright.api.profile import DECIDING, KIND, SHADOW, SchedulingProfile
from placewright.cli.profiles.profilewrites import merge_patch
from placewright.framework.registry import Registry
from placewright.kube.history import without_keys
from placewright.kube.profileapi import manifest_of
from placewright.profiles.config import read_manifest
from placewright.profiles.effective import HIDDEN, Difference, differences
from placewright.profiles.kubescheduler.documents import stated_spec, yaml_text
from placewright.profiles.presets import find_preset, preset_weights
from placewright.profiles.problem import Problem, ProfileError
from placewright.profiles.resolve import resolve
from placewright.profiles.validation import check_object

Object = dict[str, Any]
#: Names that the API server accepts. A line for a shell has no other ones.
_NAME: Final = re.compile(r"(?=.{1,253}$)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_LONGEST_NAME: Final = 253
_SHADOW_SUFFIX: Final = "-what-if"
#: Name in a manifest for a profile without an object, such as the default one of a file without profiles.
_UNNAMED: Final = "default"


class ChangedProfile(NamedTuple):
    """A profile after a change.

    Attributes:
        before: its `spec` before, without fields with their default.
        after: its `spec` after the change.
        patch: changed fields, as a merge patch of `spec`.
        problems: reasons why the operator would refuse it; empty for none.
        profile: changed profile; None if there are problems.
    """

    before: Object
    after: Object
    patch: Object
    problems: tuple[Problem, ...]
    profile: SchedulingProfile | None = None


def shown_spec(profile: SchedulingProfile) -> Object:
    """Return the `spec` of a profile for a form, without fields with their default, and without private keys."""
    return without_keys(stated_spec(profile.spec), HIDDEN)


def changed(profile: SchedulingProfile, changes: Mapping[str, Any], registry: Registry) -> ChangedProfile:
    """Change a profile with a merge patch (RFC 7386) of `shown_spec`, and check it like the operator."""
    before = stated_spec(profile.spec)
    after = _with_keys(merge(deepcopy(without_keys(before, HIDDEN)), changes), before)
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
    """Return the change for people: the differences in effect, and texts to copy, all without private keys.

    `differences` has rows of name, before and after. `patch` and `yaml` have the changed fields alone, and `kubectl` the command. `shadow`
    is the manifest of a shadow that tries the change beside the live profile. A text is empty if the change has no such form. All are empty
    if nothing changes.
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
    """Return the command that applies a patch of the whole object, in ASCII for a shell. It is empty if no API server accepts the name."""
    if not _NAME.fullmatch(name):
        return ""
    return shlex.join(["kubectl", "patch", KIND.lower(), name, "--type=merge", "-p", json.dumps(patch)])


def can_be_shadowed(profile: SchedulingProfile) -> bool:
    """Return whether a shadow can stand beside a profile: it is an object, and no shadow itself."""
    return bool(profile.metadata.name) and not profile.spec.is_shadow


def shadow_manifest(profile: SchedulingProfile, made: ChangedProfile) -> Object:
    """Build a shadow that decides with the changed profile's settings beside the live one.

    A shadow tries only the settings that decide where a pod goes. docs/shadow.md names them.
    """
    name = profile.metadata.name
    spec = {"mode": SHADOW, "shadows": name} | {field: made.after[field] for field in DECIDING if field in made.after}
    return manifest_of(f"{name[: _LONGEST_NAME - len(_SHADOW_SUFFIX)]}{_SHADOW_SUFFIX}", spec)


def _differences(before: SchedulingProfile, after: SchedulingProfile, registry: Registry) -> tuple[Difference, ...]:
    """Return the differences in effect, or none if the profile before is invalid."""
    try:
        known = resolve(before, registry)
    except ProfileError:
        return ()
    return differences(known, resolve(after, registry))


def settable_weights(profile: SchedulingProfile, registry: Registry) -> dict[str, int]:
    """Return the plugins whose weight can be set, with the weights in effect. A plugin that does not score has weight 0.

    The plugins that score come first, by weight. A profile with problems has none.
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
    """Return whether a weight would be valid for a plugin that a weight of 0 switches off: it runs, and scores."""
    weights = (profile.spec.weights or {}) | {plugin: 1}
    try:
        return plugin in resolve(replace(profile, spec=replace(profile.spec, weights=weights)), registry).weights
    except ProfileError:
        return False
