"""The image and the development loop, as far as they can be judged without Docker and Tilt."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from programs import program

from .building import manifests_of, pod_of
from .environments import environment

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
#: The distributions beside the operator, by name.
BESIDE = {f"placewright-{name}": tomllib.loads((ROOT / name / "pyproject.toml").read_text()) for name in ("console", "lab")}


def instructions(text: str) -> list[tuple[str, str]]:
    """(instruction, arguments), continued lines joined."""
    joined = re.sub(r"\\\n\s*", "", text)
    lines = [line for line in joined.splitlines() if line and not line.startswith("#")]
    return [(line.partition(" ")[0], line.partition(" ")[2]) for line in lines]


def stages() -> list[list[tuple[str, str]]]:
    """What is said before the first is for all of them, and left out."""
    found: list[list[tuple[str, str]]] = []
    for each in instructions(DOCKERFILE):
        if each[0] == "FROM":
            found.append([])
        if found:
            found[-1].append(each)
    return found


def of(stage: list[tuple[str, str]], word: str) -> list[str]:
    return [arguments for instruction, arguments in stage if instruction == word]


def copied() -> set[str]:
    """What comes from the checkout."""
    lines = [line.split() for stage in stages() for line in of(stage, "COPY") if not line.startswith("--from")]
    return {source for line in lines for source in line[:-1]}


def test_the_image_runs_as_the_user_that_the_pods_run_as() -> None:
    pod = pod_of(manifests_of(ROOT / "manifests" / "base"))["securityContext"]
    assert of(stages()[-1], "USER") == [f"{pod['runAsUser']}:{pod['runAsGroup']}"]


def test_the_last_stage_takes_the_built_files_and_runs_nothing() -> None:
    final = stages()[-1]
    assert of(final, "RUN") == []
    assert of(final, "COPY") == ["--from=build /opt/placewright /opt/placewright"]


def test_every_stage_has_the_same_named_python() -> None:
    images = {line.split()[0] for stage in stages() for line in of(stage, "FROM")} - {"build"}
    assert images == {"${PYTHON_IMAGE}"}
    assert ("ARG", "PYTHON_IMAGE=python:3.14-slim") in instructions(DOCKERFILE)
    assert '\nPYTHON: Final = "3.14"\n' in (ROOT / ".ci" / "lock").read_text(), "its requirements are resolved for another Python"
    assert PROJECT["project"]["requires-python"] == ">=3.11"


def test_what_the_package_is_built_from_is_copied_and_not_ignored() -> None:
    target = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {"pyproject.toml", PROJECT["project"]["readme"], *PROJECT["project"]["license-files"], *target["force-include"]}
    needed |= {package.partition("/")[0] for package in target["packages"]}
    needed |= {name.removeprefix("placewright-") for name in BESIDE}
    needed.add("examples")  # plugins that `--build-arg PLUGINS` adds
    assert copied() == needed
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert kept == needed
    assert all((ROOT / each).exists() for each in needed)


def parts(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def pinned(name: str) -> dict[str, str]:
    """By release's name, its version, of one file of digests. Each release has one digest or more."""
    text = (ROOT / "operator" / "requirements" / f"{name}.txt").read_text()
    found = re.findall(r"^([\w.-]+)==(\S+) \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", text, re.MULTILINE)
    assert len(found) == text.count("==")
    return {release: version for release, version, _ in found}


@pytest.mark.parametrize("extras", ["fast,otel", "fast,lab"])
def test_what_the_package_needs_is_pinned_by_digest_in_a_version_that_it_takes(extras: str) -> None:
    """`python .ci/lock` writes the files anew."""
    asked = [*PROJECT["project"]["dependencies"]]
    asked += [each for name in extras.split(",") for each in PROJECT["project"]["optional-dependencies"][name]]
    wanted: list[str] = []
    for each in asked:  # a distribution of this repository grows the list that is walked
        name = each.partition("==")[0]
        if name in BESIDE:
            asked += BESIDE[name]["project"]["dependencies"]
        elif name != "placewright":
            wanted.append(each)
    assert len(wanted) > 10
    for at, requirements in ((pinned(extras), wanted), (pinned("build"), PROJECT["build-system"]["requires"])):
        for requirement in requirements:
            read = re.fullmatch(r"([\w-]+)>=([\d.]+)(?:;.*)?", requirement)
            assert read is not None, f"{requirement}: another form than this test reads"
            name, least = read.groups()
            assert parts(at[name.lower()]) >= parts(least), requirement


def test_the_image_installs_nothing_that_has_no_digest() -> None:
    (command,) = (each for each in of(stages()[0], "RUN") if "pip install" in each)
    installs = [each for each in command.split("&&") if "pip install" in each]
    assert len(installs) == 3
    for each in installs:
        from_the_wheel_beside = "--no-deps --no-index /opt/build/wheels" in each
        assert from_the_wheel_beside or "--require-hashes --only-binary :all: -r" in each
    assert "ARG EXTRAS=fast,otel" in DOCKERFILE


def test_packages_of_plugins_that_an_image_may_have_are_built_with_what_is_pinned_for_our_own_wheel() -> None:
    own = PROJECT["build-system"]
    packages = sorted((ROOT / "examples").glob("*/pyproject.toml"))
    assert packages
    for each in packages:
        assert tomllib.loads(each.read_text())["build-system"] == own, each
    assert 'wheel --no-deps --no-build-isolation --wheel-dir /opt/build/wheels "./examples/${plugins}"' in DOCKERFILE


def test_hadolint_finds_nothing_wrong_with_the_dockerfile() -> None:
    linted = subprocess.run([program("hadolint"), str(ROOT / "Dockerfile")], capture_output=True, text=True, check=False, timeout=30)
    assert (linted.returncode, linted.stdout) == (0, "")


def test_the_entry_point_is_a_script_of_the_package() -> None:
    (entry,) = of(stages()[-1], "ENTRYPOINT")
    assert entry == '["/opt/placewright/bin/placewright"]'
    assert "placewright" in PROJECT["project"]["scripts"]


def test_the_steps_of_the_build_install_the_commands_from_what_is_copied(tmp_path: Path) -> None:
    """In an empty folder, with all that the lab and the plugins add. Only the pinned releases, of another Python, are ours."""
    source, opt = tmp_path / "src", tmp_path / "opt"
    source.mkdir()
    for name in copied():
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, source / name)
    for name in ("placewright", "build"):
        environment(opt / name)
    (command,) = (each for each in of(stages()[0], "RUN") if "pip install" in each)
    steps = [step for step in command.split(" && ") if "--require-hashes" not in step]
    run = " && ".join(steps).replace("/opt/", f"{opt}/").replace("/bin/pip ", "/bin/python -m pip ")
    variables = {"EXTRAS": "fast,lab", "PLUGINS": "legacy-plugins load-aware", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(["sh", "-c", run], cwd=source, env=variables, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    shutil.rmtree(source)  # the last stage has only the environment
    for words in (["version"], ["schema", "NodeLabel"], ["demo", "--help"], ["console", "--help"]):
        ran = subprocess.run([opt / "placewright" / "bin" / "placewright", *words], capture_output=True, text=True, check=False, timeout=60)
        assert ran.returncode == 0, ran.stderr


def test_all_that_the_image_writes_goes_where_the_pods_have_a_volume() -> None:
    """So the root file system can be read-only."""
    (line,) = of(stages()[-1], "ENV")
    variables = dict(each.split("=") for each in line.split())
    (container,) = pod_of(manifests_of(ROOT / "manifests" / "base"))["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert variables["HOME"] in {mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")}
    assert of(stages()[-1], "WORKDIR") == [variables["HOME"]]
    assert variables["PYTHONDONTWRITEBYTECODE"] == "1"


class Tilt:
    """What a Tiltfile asks for; Starlark as far as this one goes is Python."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def run(self) -> None:
        names = ("load", "update_settings", "docker_build_with_restart", "fall_back_on", "sync", "k8s_yaml", "kustomize")
        known = {name: self._noting(name) for name in (*names, "k8s_resource", "local_resource")}
        exec((ROOT / "Tiltfile").read_text(), {"__builtins__": {}, **known})

    def _noting(self, name: str) -> Any:
        def call(*given: Any, **named: Any) -> str:
            self.calls.append((name, given, named))
            return name

        return call

    def of(self, name: str) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
        return [(given, named) for called, given, named in self.calls if called == name]


@pytest.fixture(scope="module")
def tilt() -> Tilt:
    made = Tilt()
    made.run()
    return made


def test_the_tiltfile_names_files_that_there_are(tilt: Tilt) -> None:
    ((_, build),) = tilt.of("docker_build_with_restart")
    paths = [*build["only"], *(path for given, _ in tilt.of("fall_back_on") for path in given[0])]
    paths += [given[0] for given, _ in (*tilt.of("sync"), *tilt.of("kustomize"))]
    for _, named in tilt.of("local_resource"):
        paths += [*named["deps"], *named["ignore"]]
    assert [path for path in paths if not (ROOT / path).exists()] == []
    assert set(build["only"]) == copied()


def test_tilt_puts_code_where_the_image_has_it(tilt: Tilt) -> None:
    ((_, build),) = tilt.of("docker_build_with_restart")
    assert f"AS {build['target']}\n" in DOCKERFILE
    synced = dict(given for given, _ in tilt.of("sync"))
    version = re.search(r"ARG PYTHON_IMAGE=python:([\d.]+)-slim", DOCKERFILE)
    assert version is not None
    packages = f"/opt/placewright/lib/python{version[1]}/site-packages"
    assert synced == {
        "operator/placewright": f"{packages}/placewright",
        "console/placewright_console": f"{packages}/placewright_console",
    }


def test_what_restarts_the_process_is_not_hidden_by_a_volume(tilt: Tilt) -> None:
    ((_, build),) = tilt.of("docker_build_with_restart")
    (container,) = pod_of(manifests_of(ROOT / "manifests" / "overlays" / "development"))["containers"]
    for mount in container["volumeMounts"]:
        assert not build["restart_file"].startswith(f"{mount['mountPath']}/")
    assert not container.get("args"), "Tilt's entrypoint has its arguments with it"


def test_tilt_s_resources_are_objects_of_the_overlay(tilt: Tilt) -> None:
    folders = [given[0] for given, _ in tilt.of("kustomize")]
    assert folders == ["crds", "manifests/overlays/development"], "the definitions are first"
    built = {f"{each['metadata']['name']}:{each['kind'].lower()}" for folder in folders for each in manifests_of(ROOT / folder)}
    named = [each for _, named in tilt.of("k8s_resource") for each in named.get("objects", ())]
    assert len(named) == 5
    assert set(named) <= built
