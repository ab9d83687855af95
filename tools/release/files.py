"""The files of a release, kind by kind. Each function writes into a folder; times are seconds since 1970."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from placewright import __version__
from tools.release import chart

ROOT: Final = Path(__file__).resolve().parents[2]
#: Folders of the distributions, in the repository.
DISTRIBUTIONS: Final = (".", "console", "lab")
_CHART: Final = ROOT / "manifests" / "helm" / "placewright"
#: Kustomizations. The definitions have a file of their own, because kubectl finds no SchedulingProfile before they are applied.
#: Besides, `kubectl delete -f install.yaml` must keep the users' profiles.
_MANIFESTS: Final = {"definitions": ROOT / "crds", "install": ROOT / "manifests" / "base"}
#: Bills of materials: pinned requirements of the images, and the distribution that needs them.
_BILLS: Final = {"placewright": ("fast,otel", ROOT), "placewright-lab": ("fast,lab", ROOT / "lab")}
#: The address of a repository on GitHub, also with a branch and a path behind it.
_GITHUB: Final = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+)(?:/.*)?")
#: Name and version of a pinned package.
_PIN: Final = re.compile(r"^([\w.-]+)==([^\s;]+)", re.MULTILINE)
#: A link to a file of the repository.
_OWN_LINK: Final = re.compile(r"\]\((?!https?:|#)([^)]+)\)")


def time(environ: Mapping[str, str]) -> int:
    """Return the time of all files: SOURCE_DATE_EPOCH, or the time of the commit."""
    return int(environ.get("SOURCE_DATE_EPOCH") or _run("git", "log", "-1", "--format=%ct"))


def image(environ: Mapping[str, str]) -> str:
    """Return the name of the published image, by PLACEWRIGHT_REPOSITORY; without it, the name that `docker build` gives.

    Raises:
        ValueError: the variable is set to a place for which no registry is known.
    """
    name = repository(environ)
    return f"ghcr.io/{name.lower()}" if name else "placewright"


def repository(environ: Mapping[str, str]) -> str:
    """Return OWNER/NAME of PLACEWRIGHT_REPOSITORY, "" if it is not set.

    Raises:
        ValueError: the variable is set to another place than GitHub, whose registry and addresses are not known.
    """
    given = environ.get("PLACEWRIGHT_REPOSITORY", "")
    found = _GITHUB.fullmatch(given)
    if given and not found:
        raise ValueError(f"PLACEWRIGHT_REPOSITORY: found {json.dumps(given)}; allowed https://github.com/OWNER/NAME")
    return found[1] if found else ""


def write_distributions(folder: Path, seconds: int, name: str = "") -> None:
    """Write a wheel and a source distribution of each distribution.

    With a repository's `name` they are built from the files of the commit, and links of the README lead there. An index of packages shows
    the README without the files beside it.
    """
    with TemporaryDirectory() as scratch:
        tree = Path(scratch) / "tree" if name else ROOT
        if name:
            archive = Path(scratch) / "tree.tar"
            _run("git", "archive", "--output", str(archive), "HEAD")
            shutil.unpack_archive(archive, tree, filter="data")
            readme = tree / "README.md"
            readme.write_text(readme_of(name, readme.read_text(encoding="utf-8")), encoding="utf-8")
        for each in DISTRIBUTIONS:
            _run(sys.executable, "-m", "hatchling", "build", "-d", str(folder), folder=tree / each, seconds=seconds)


def readme_of(name: str, text: str) -> str:
    """Return the README with links to files of this version in the repository OWNER/NAME."""

    def absolute(link: re.Match[str]) -> str:
        kind = "raw" if link[1].endswith(".webp") else "blob"
        return f"](https://github.com/{name}/{kind}/v{__version__}/{link[1]})"

    return _OWN_LINK.sub(absolute, text)


def write_chart(folder: Path, seconds: int, image: str) -> None:
    """Write the chart as a package and as an OCI layout; its default image is `image`."""
    files = chart.read(_CHART)
    values = f"{_CHART.name}/values.yaml"
    files[values] = _replaced(files[values].decode(), "  repository: placewright\n", f"  repository: {image}\n").encode()
    packed = chart.package(files, seconds)
    (folder / f"placewright-{__version__}.tgz").write_bytes(packed)
    (folder / f"placewright-chart-{__version__}.oci.tar").write_bytes(chart.layout(packed, chart.about(files), seconds))


def write_manifests(folder: Path, image: str) -> None:
    """Write the files for `kubectl apply --server-side -f`, as kubectl's kustomize builds them."""
    built = {name: _run("kubectl", "kustomize", str(kustomization)) for name, kustomization in _MANIFESTS.items()}
    tag = f":{__version__}\n"
    built["install"] = _replaced(built["install"], f" image: placewright{tag}", f" image: {image}{tag}")
    for name, text in built.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")


def write_bills(folder: Path, seconds: int) -> None:
    """Write bills of materials in the format CycloneDX: the pinned Python packages of an image, with their digests.

    Raises:
        ValueError: a bill does not name exactly the pinned packages, or differs from the wheel in the folder.
    """
    for name, (requirements, distribution) in _BILLS.items():
        pins = ROOT / "operator" / "requirements" / f"{requirements}.txt"
        text = _run(
            sys.executable, "-m", "cyclonedx_py", "requirements", "--output-reproducible",
            "--pyproject", str(distribution / "pyproject.toml"), str(pins),
            seconds=seconds,
        )  # fmt: skip
        bill = json.loads(text)
        named = sorted((each["name"], each["version"]) for each in bill["components"])
        if named != sorted(_PIN.findall(pins.read_text(encoding="utf-8"))):
            raise ValueError(f"the bill of {name} does not name the packages of {pins.name}: {named}")
        bill["metadata"]["component"]["version"] = __version__  # which pyproject.toml leaves to Hatch
        check_bill(bill, folder / f"{name.replace('-', '_')}-{__version__}-py3-none-any.whl")
        (folder / f"{name}-{__version__}.cdx.json").write_text(json.dumps(bill, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def check_bill(bill: Mapping[str, Any], wheel: Path) -> None:
    """Compare the distribution that a bill is about with the metadata of its wheel.

    Args:
        bill: a document of CycloneDX, as parsed from JSON.
        wheel: file whose metadata pip would read.

    Raises:
        ValueError: the format, the name, the version or the licence differs.
    """
    about = bill["metadata"]["component"]
    told = [bill["bomFormat"], about["name"], about["version"], *(each["license"]["id"] for each in about["licenses"])]
    (found,) = metadata.distributions(path=[str(wheel)])
    wanted = ["CycloneDX", *(found.metadata[field] for field in ("Name", "Version", "License-Expression"))]
    if told != wanted:
        raise ValueError(f"the bill of {wheel.name} is about {told}, and the wheel is {wanted}")


def write_sums(folder: Path) -> None:
    """Write SHA256SUMS over all files, for `sha256sum --check`."""
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in sorted(folder.iterdir())]
    (folder / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")


def _replaced(text: str, old: str, new: str) -> str:
    """Replace the only place of a text, and refuse a text with no place or several."""
    before, after = text.split(old)
    return f"{before}{new}{after}"


def _run(*command: str, folder: Path = ROOT, seconds: int | None = None) -> str:
    environment = os.environ if seconds is None else {**os.environ, "SOURCE_DATE_EPOCH": str(seconds)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True).stdout  # noqa: S603
