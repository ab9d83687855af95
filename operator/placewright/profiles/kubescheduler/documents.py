"""Writes profiles and configurations as documents: only fields that are set, in the order in which people write them, and as YAML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
import yaml

from placewright.api.bad_input import printable
from placewright.api.profile import KIND, Backoff, Plugins, ProfileSpec, SchedulingProfile
from placewright.profiles.config import API_VERSION
from placewright.profiles.effective import plain

Document = dict[str, Any]

_WIDTH: Final = 120
#: Metadata that a file keeps: the rest is the API server's bookkeeping.
_KEPT_METADATA: Final = ("name", "labels", "annotations")


class _Dumper(yaml.SafeDumper):
    """Writes values out in full: most readers of Kubernetes' files do not expect aliases."""

    def ignore_aliases(self, _data: object) -> bool:
        """Write no anchors."""
        return True


def to_yaml(documents: Iterable[Document], comments: Sequence[str] = ()) -> str:
    """Write documents as YAML."""
    header = "".join(f"# {printable(comment)}\n" for comment in comments)
    return header + "---\n".join(map(yaml_text, documents))


def yaml_text(data: object) -> str:
    """Write a plain value as YAML. If a character could control a terminal, all characters that are not ASCII are escaped."""
    text = _dumped(data, allow_unicode=True)
    return text if text.replace("\n", "").isprintable() else _dumped(data, allow_unicode=False)


def _dumped(data: object, *, allow_unicode: bool) -> str:
    text: str = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=allow_unicode, width=_WIDTH)
    return text


def manifest(profile: SchedulingProfile) -> Document:
    """Write a profile as a manifest for `kubectl apply`."""
    metadata = {name: value for name, value in msgspec.to_builtins(profile.metadata).items() if name in _KEPT_METADATA and value}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": stated_spec(profile.spec)}


def stated_spec(spec: ProfileSpec) -> Document:
    """Write `spec` without the fields that have their default; the schedulerName comes first."""
    document: Document = {"schedulerName": spec.scheduler_name} if spec.scheduler_name else {}
    stated = msgspec.to_builtins(spec) | {"plugins": stated_plugins(spec.plugins)}
    stated["backoff"] = None if spec.backoff == Backoff() else plain(spec.backoff)
    return document | {name: value for name, value in stated.items() if value not in (None, {}, [])}


def stated_plugins(plugins: Plugins) -> Document:
    """Write the plugin sets that are not empty."""
    sets: Mapping[str, Document] = msgspec.to_builtins(plugins)
    stated = {point: {side: refs for side, refs in each.items() if refs} for point, each in sets.items()}
    return {point: each for point, each in stated.items() if each}
