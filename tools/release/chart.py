"""Packs the Helm chart, and writes it as an OCI layout, the form in which registries keep charts.

`helm push` and `helm install` take the package. `oras cp --from-oci-layout` copies the layout into a registry, byte for byte.
Both are written here because Helm puts the current time into its packages. The same files give the same bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import yaml

_CONFIG: Final = "application/vnd.cncf.helm.config.v1+json"
_CONTENT: Final = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
_MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
_INDEX: Final = "application/vnd.oci.image.index.v1+json"
_LAYOUT: Final = b'{"imageLayoutVersion":"1.0.0"}'


def read(chart: Path) -> dict[str, bytes]:
    """Return the files of a chart by their names in its package. Symbolic links are followed, because the definitions are links."""
    return {f"{chart.name}/{file.relative_to(chart).as_posix()}": file.read_bytes() for file in chart.rglob("*") if file.is_file()}


def package(files: Mapping[str, bytes], seconds: int) -> bytes:
    """Return a package as `helm package` makes it; all of its files are of this time, in seconds since 1970."""
    return gzip.compress(_tar(files, seconds), mtime=seconds)


def layout(packed: bytes, about: Mapping[str, Any], seconds: int) -> bytes:
    """Return an OCI layout as a tar archive, with the chart under its version as the tag.

    Args:
        packed: the package.
        about: the content of Chart.yaml.
        seconds: time of creation, since 1970.
    """
    created = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    annotations = {"created": created, "description": about["description"], "title": about["name"], "version": about["version"]}
    blobs = [(_CONFIG, _json(about)), (_CONTENT, packed)]
    config, content = (_descriptor(kind, blob) for kind, blob in blobs)
    manifest = {
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": config,
        "layers": [content],
        "annotations": {f"org.opencontainers.image.{name}": value for name, value in annotations.items()},
    }
    blobs.append((_MANIFEST, _json(manifest)))
    tagged = {**_descriptor(*blobs[-1]), "annotations": {"org.opencontainers.image.ref.name": about["version"]}}
    index = {"schemaVersion": 2, "mediaType": _INDEX, "manifests": [tagged]}
    files = {f"blobs/sha256/{hashlib.sha256(blob).hexdigest()}": blob for _, blob in blobs}
    return _tar({**files, "index.json": _json(index), "oci-layout": _LAYOUT}, seconds)


def about(files: Mapping[str, bytes]) -> dict[str, Any]:
    """Return the content of Chart.yaml among the files of a chart."""
    (text,) = (content for name, content in files.items() if name.count("/") == 1 and name.endswith("/Chart.yaml"))
    content: dict[str, Any] = yaml.safe_load(text)
    return content


def _descriptor(kind: str, blob: bytes) -> dict[str, Any]:
    return {"mediaType": kind, "digest": f"sha256:{hashlib.sha256(blob).hexdigest()}", "size": len(blob)}


def _json(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, separators=(",", ":"), sort_keys=True).encode()


def _tar(files: Mapping[str, bytes], seconds: int) -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in sorted(files):
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(files[name]), seconds
            archive.addfile(member, io.BytesIO(files[name]))
    return written.getvalue()
