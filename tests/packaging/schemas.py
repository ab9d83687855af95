"""What is wrong with a manifest, by the schemas of Kubernetes' own API and of our definitions; without a network."""

from __future__ import annotations

import functools
import importlib.util
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import yaml
from referencing import Registry, Resource

Manifest = dict[str, Any]
ROOT = Path(__file__).parents[2]
#: Kinds of components that older API servers do not serve; the newest schemas alone judge them.
YOUNG = frozenset({
    "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
})  # fmt: skip
#: Groups whose schemas are nowhere in here; what is of them is only parsed.
FOREIGN = frozenset({
    "argoproj.io", "cert-manager.io", "kustomize.toolkit.fluxcd.io", "source.toolkit.fluxcd.io", "helm.toolkit.fluxcd.io",
    "monitoring.coreos.com",
})  # fmt: skip


def problems(manifest: Manifest) -> Iterator[str]:
    """One line each; unknown fields are problems too."""
    version, kind = manifest["apiVersion"], manifest["kind"]
    group = version.rpartition("/")[0]
    if group in FOREIGN:
        return
    name = f"{kind} {manifest['metadata']['name']}"
    if (version, kind) in defined():
        validator = jsonschema.Draft202012Validator(defined()[version, kind])
        yield from (f"{name}: {error.json_path}: {error.message}" for error in validator.iter_errors(manifest))
        return
    for folder in versions()[1:] if kind in YOUNG else versions():
        validator = built_in(folder, kind, version)
        if validator is None:
            yield f"{name}: {folder.name} has no {kind} in {version}"
        else:
            yield from (f"{name} in {folder.name}: {error.json_path}: {error.message}" for error in validator.iter_errors(manifest))


@functools.cache
def versions() -> tuple[Path, Path]:
    """The schemas of the oldest and of the newest Kubernetes that come with kubernetes-validate, those that refuse unknown fields.

    Read past that package's code, which imports another one called `packaging`, as this folder is.
    """
    found = importlib.util.find_spec("kubernetes_validate")
    assert found is not None and found.submodule_search_locations is not None, "kubernetes-validate is not installed"
    folders = Path(found.submodule_search_locations[0], "kubernetes-json-schema").glob("v*-strict")
    ordered = sorted(folders, key=lambda folder: [int(part) for part in re.findall(r"\d+", folder.name)])
    return ordered[0], ordered[-1]


@functools.cache
def built_in(folder: Path, kind: str, version: str) -> jsonschema.Draft202012Validator | None:
    """What judges objects of a built-in kind; None where that Kubernetes has no such kind."""
    group, _, number = version.rpartition("/")
    parts = [kind.lower(), group.partition(".")[0], number]
    file = folder / f"{'-'.join(part for part in parts if part)}.json"
    if not file.is_file():
        return None
    return jsonschema.Draft202012Validator(json.loads(file.read_text()), registry=definitions(folder))


@functools.cache
def definitions(folder: Path) -> Registry[Any]:
    """What the schemas of one Kubernetes refer to."""
    shared: Resource[Any] = Resource.from_contents(json.loads((folder / "_definitions.json").read_text()))
    return shared @ Registry()


@functools.cache
def defined() -> dict[tuple[str, str], Manifest]:
    """Schemas of custom resources, by apiVersion and kind; objects that do not say otherwise take no unknown field."""
    found = {}
    for file in (ROOT / "crds").rglob("*.yaml"):
        for definition in yaml.safe_load_all(file.read_text()):
            if definition["kind"] == "CustomResourceDefinition":
                spec = definition["spec"]
                for version in spec["versions"]:
                    schema = _closed(version["schema"]["openAPIV3Schema"], top=True)
                    found[f"{spec['group']}/{version['name']}", spec["names"]["kind"]] = schema
    return found


def _closed(schema: Manifest, *, top: bool = False) -> Manifest:
    """The schema with unknown fields refused, as kubectl asks the API server to."""
    closed = dict(schema)
    if "properties" in schema:
        closed["properties"] = {name: _closed(each) for name, each in schema["properties"].items()}
        if top:
            closed["properties"] |= {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
        if not schema.get("x-kubernetes-preserve-unknown-fields") and "additionalProperties" not in schema:
            closed["additionalProperties"] = False
    if isinstance(schema.get("items"), dict):
        closed["items"] = _closed(schema["items"])
    return closed
