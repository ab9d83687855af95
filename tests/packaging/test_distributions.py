"""Three distributions from one repository: they are installed from their folders, no index is asked for their names, versions are equal."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from placewright import __version__
from placewright.framework.distributions import COMMANDS
from tools.release.files import write_distributions, write_manifests

from .building import documents, manifests_of, pod_of
from .environments import environment

#: Installations take long on a busy machine.
pytestmark = pytest.mark.timeout(600)
ROOT = Path(__file__).parents[2]
FOLDERS = {"placewright": ROOT, "placewright-console": ROOT / "console", "placewright-lab": ROOT / "lab"}
#: The time in released files, in seconds since 1970.
EPOCH = 1_700_000_000
PACKAGES = {
    "placewright": ["placewright"],
    "placewright-console": ["placewright_console"],
    "placewright-lab": ["placewright_lab", "kubesandbox"],
}


def declared(name: str) -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((FOLDERS[name] / "pyproject.toml").read_text())["project"]
    return project


@pytest.mark.parametrize("name", FOLDERS)
def test_each_distribution_has_the_operators_version_and_asks_for_the_others_in_it(name: str) -> None:
    project = declared(name)
    assert (project["name"], project["dynamic"]) == (name, ["version"])
    written = tomllib.loads((FOLDERS[name] / "pyproject.toml").read_text())["tool"]["hatch"]["version"]["path"]
    assert (FOLDERS[name] / written).resolve() == ROOT / "operator" / "placewright" / "__init__.py"
    asked = [*project["dependencies"], *(each for extra in project.get("optional-dependencies", {}).values() for each in extra)]
    ours = {each for each in asked if each.startswith("placewright")}
    assert ours == {f"{other}=={__version__}" for other in FOLDERS if other in {each.partition("==")[0] for each in ours}}
    assert {each.partition("==")[0] for each in ours} == {
        "placewright": {"placewright-console", "placewright-lab"},  # extras
        "placewright-console": {"placewright"},
        "placewright-lab": {"placewright", "placewright-console"},
    }[name]


def test_what_is_built_with_is_the_same_for_all() -> None:
    systems = [tomllib.loads((folder / "pyproject.toml").read_text())["build-system"] for folder in FOLDERS.values()]
    assert systems[0] == systems[1] == systems[2]


def test_images_tags_and_charts_are_named_in_this_version() -> None:
    named = re.compile(r"(?:placewright(?:-lab)?[: ]|(?:ref=|rev: |tag: |targetRevision: )v|newTag: |[Vv]ersion )(0\.\d+\.\d+)")
    pages = [page for page in (ROOT / "docs").glob("*.md") if page.name != "upgrade.md"]  # which names the version before, too
    files = [ROOT / "README.md", ROOT / "SECURITY.md", *pages, *(ROOT / "examples").glob("*/README.md")]
    files += [file for file in (ROOT / "manifests").rglob("*") if file.suffix in {".yaml", ".md"} and file.is_file()]
    found = {(file, version) for file in files for version in named.findall(file.read_text())}
    assert len(found) > 10
    assert {str(file.relative_to(ROOT)) for file, version in found if version != __version__} == set()


# --- installed -----------------------------------------------------------------------------------------------------------------------


class Index:
    """A package index that has nothing, and knows what it was asked for."""

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self.url = f"http://127.0.0.1:{server.server_address[1]}/simple/"
        self.asked: list[str] = []


@contextmanager
def index() -> Iterator[Index]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.asked.append(self.path.strip("/").rpartition("/")[2])
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            """Be silent."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        made = Index(server)
        Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield made
        server.shutdown()


def pip(python: Path, at: Index, *words: str) -> subprocess.CompletedProcess[str]:
    command = [str(python), "-m", "pip", "--isolated", "--disable-pip-version-check", *words, "--index-url", at.url, "--retries", "0"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def said(python: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(python), "-P", *words], cwd=python.parent, capture_output=True, text=True, check=False)


def test_one_command_installs_all_folders_and_asks_an_index_for_none_of_their_names(tmp_path: Path) -> None:
    python = environment(tmp_path / "all")
    with index() as at:
        done = pip(python, at, "install", "--no-build-isolation", "-e", ".[console,lab]", "-e", "console", "-e", "lab")
    assert done.returncode == 0, done.stderr
    assert [each for each in at.asked if each.startswith("placewright")] == []
    places = {package: FOLDERS[name] for name, packages in PACKAGES.items() for package in packages}
    lines = said(python, "-c", f"import {', '.join(places)}; print(*({', '.join(f'{each}.__file__' for each in places)}), sep='\\n')")
    assert lines.stderr == ""
    for line, folder in zip(lines.stdout.splitlines(), places.values(), strict=True):
        assert Path(line).is_relative_to(folder)
    helped = said(python, "-m", "placewright.cli.main", "--help").stdout
    assert all(f"\n    {command} " in helped for commands in COMMANDS.values() for command in commands)


def test_without_the_folders_an_index_would_be_asked(tmp_path: Path) -> None:
    """So the test before this one looks at the right place."""
    python = environment(tmp_path / "extra")
    with index() as at:
        done = pip(python, at, "install", "--no-build-isolation", "--dry-run", "-e", ".[console,lab]")
    assert done.returncode != 0
    assert "placewright-console" in at.asked


@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_the_setup_of_a_clone_names_every_folder_in_one_command(tmp_path: Path, installer: str) -> None:
    """Stand-ins for the interpreter and for uv note the words with which they are called."""
    programs, environment = tmp_path / "bin", tmp_path / "venv" / "bin"
    stand_in = f'#!/bin/sh\necho "$@" >>{tmp_path}/called\n'
    for program in (environment / "python", *([programs / "uv"] if installer == "uv" else [])):
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(stand_in)
        program.chmod(0o755)
    programs.mkdir(exist_ok=True)
    path = f"{programs}:/usr/bin:/bin"
    subprocess.run(["sh", ROOT / ".ci" / "setup", tmp_path / "venv"], check=True, env={"PATH": path}, timeout=20)
    (command,) = [line for line in (tmp_path / "called").read_text().splitlines() if "pip install" in line]
    extras = {name.removeprefix("placewright-") for name in FOLDERS} - {"placewright"}
    assert extras <= set(command.partition(".[")[2].partition("]")[0].split(","))
    assert all(f"-e {extra}" in command for extra in extras)


# --- built, as for an image ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", name="wheels")
def _wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Wheels of all distributions, built as the Dockerfile does."""
    folder, python = tmp_path_factory.mktemp("wheels"), Path(sys.executable)
    with index() as at:
        done = pip(python, at, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), ".", "./console", "./lab")
    assert done.returncode == 0, done.stderr
    return {wheel.name.partition("-")[0].replace("_", "-"): wheel for wheel in folder.glob("*.whl")}


def test_a_wheel_has_the_packages_of_its_folder_and_no_others(wheels: dict[str, Path]) -> None:
    assert wheels.keys() == FOLDERS.keys()
    for name, wheel in wheels.items():
        files = zipfile.ZipFile(wheel).namelist()
        assert {file.partition("/")[0] for file in files if ".dist-info/" not in file} == set(PACKAGES[name]), name
        assert {file for file in files if file.endswith("/py.typed")} == {f"{package}/py.typed" for package in PACKAGES[name]}
    assert "placewright/crds/schedulingprofiles.yaml" in zipfile.ZipFile(wheels["placewright"]).namelist()
    assert "placewright_console/pages/static/app.js" in zipfile.ZipFile(wheels["placewright-console"]).namelist()


def test_the_image_has_the_console_and_no_lab_and_says_where_a_command_of_the_lab_is(wheels: dict[str, Path], tmp_path: Path) -> None:
    python = environment(tmp_path / "image")
    with index() as at:
        chosen = [str(wheels[name]) for name in ("placewright", "placewright-console")]
        assert pip(python, at, "install", "--no-deps", *chosen).returncode == 0
    assert at.asked == []
    found = said(python, "-c", _FOUND)
    assert json.loads(found.stdout) == {"console": True, "lab": [False, False]}, found.stderr
    simulate = said(python, "-m", "placewright.cli.main", "simulate", "-f", "x")
    assert simulate.returncode == 2
    how = f"in a clone of Placewright {__version__}, run pip install . ./console ./lab"
    assert f"placewright-lab is not installed: {how}" in simulate.stderr
    offered = said(python, "-m", "placewright.cli.main", "console", "some.snapshot")
    assert "placewright-lab is not installed" in offered.stderr


def test_the_operator_alone_runs_its_commands(wheels: dict[str, Path], tmp_path: Path) -> None:
    python = environment(tmp_path / "operator")
    with index() as at:
        assert pip(python, at, "install", "--no-deps", str(wheels["placewright"])).returncode == 0
    found = said(python, "-c", _FOUND)
    assert json.loads(found.stdout) == {"console": False, "lab": [False, False]}, found.stderr
    assert said(python, "-m", "placewright.cli.main", "version").stdout.startswith(f"placewright {__version__} ")
    assert said(python, "-m", "placewright.cli.main", "run", "--help").returncode == 0


# --- released ---------------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", name="released")
def _released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("released")
    write_distributions(folder, EPOCH)
    return folder


def test_a_release_has_a_wheel_and_a_source_distribution_of_each(released: Path) -> None:
    names = [name.replace("-", "_") for name in FOLDERS]
    expected = {f"{name}-{__version__}{ending}" for name in names for ending in ("-py3-none-any.whl", ".tar.gz")}
    assert {file.name for file in released.iterdir()} == expected


@pytest.mark.parametrize("files", ["*.whl", "*.tar.gz"])
def test_a_release_is_installed_from_its_files_and_runs(released: Path, tmp_path: Path, files: str) -> None:
    python = environment(tmp_path / "empty")
    operator, *others = sorted(map(str, released.glob(files)), key=len)
    with index() as at:
        done = pip(python, at, "install", "--no-build-isolation", f"{operator}[console,lab]", *others)
    assert done.returncode == 0, done.stderr
    assert [each for each in at.asked if each.startswith("placewright")] == []
    sample = str(ROOT / "manifests" / "samples" / "bin-packing.yaml")
    printed = {"version": f"placewright {__version__} ", f"validate {sample}": "1 profile in 1 file: nothing is wrong"}
    for words, says in {**printed, "schema NodeResourcesFit": '"scoringStrategy"', "demo --help": "--console"}.items():
        command = [str(python.with_name("placewright")), *words.split()]
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (ran.returncode, says in ran.stdout) == (0, True), ran


def test_a_source_distribution_builds_the_wheel_that_is_released(released: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So it has all files; and each build gives the same bytes."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(EPOCH))
    with index() as at:
        sources = map(str, released.glob("*.tar.gz"))
        done = pip(Path(sys.executable), at, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path), *sources)
    assert done.returncode == 0, done.stderr
    built = {wheel.name: hashlib.sha256(wheel.read_bytes()).hexdigest() for wheel in tmp_path.glob("*.whl")}
    assert built == {wheel.name: hashlib.sha256(wheel.read_bytes()).hexdigest() for wheel in released.glob("*.whl")}


def test_definitions_are_apart_from_the_manifests_and_these_name_the_published_image(tmp_path: Path) -> None:
    crds, expected = (manifests_of(ROOT / folder) for folder in ("crds", "manifests/base"))
    write_manifests(tmp_path, "ghcr.io/someone/placewright")
    definitions, install = (documents((tmp_path / f"{name}.yaml").read_text()) for name in ("definitions", "install"))
    assert definitions == crds
    (container,) = pod_of(expected)["containers"]
    container["image"] = f"ghcr.io/someone/placewright:{__version__}"
    assert install == expected


def test_each_distribution_brings_the_licence_along(released: Path) -> None:
    for wheel in released.glob("*.whl"):
        about = f"{wheel.name.removesuffix('-py3-none-any.whl')}.dist-info"
        assert zipfile.ZipFile(wheel).read(f"{about}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()


_FOUND = """
import json
from importlib.util import find_spec
from placewright.serving.pages import find_pages
lab = [find_spec(name) is not None for name in ("placewright_lab", "kubesandbox")]
print(json.dumps({"console": not isinstance(find_pages("console"), str), "lab": lab}))
"""
