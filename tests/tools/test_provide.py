"""Where the control plane's programs come from: the environment, the cache, a build. The machine is made of scripts."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from lab.controlplane.machines import FakeMachine, script
from placewright.api.bad_input import InputError
from placewright_lab.controlplane.assets import Assets
from programs import on_linux
from tools.kubernetes.__main__ import main
from tools.kubernetes.provide import BuildFailed, Unavailable, cache_folder, provide, with_source_packages

ROOT = Path(__file__).parents[2]


class Place:
    """A machine, a user's cache on it, and what was said."""

    def __init__(self, folder: Path) -> None:
        self.fake = FakeMachine(folder)
        self.environ = {"XDG_CACHE_HOME": str(folder / "cache")}
        self.cache = folder / "cache" / "placewright"
        self.said: list[str] = []

    def provide(self, *, root: bool = True) -> Assets:
        return provide(self.environ, self.said.append, self.fake.machine(root=root))

    @property
    def kept(self) -> list[str]:
        """What is in the cache, but for the lock."""
        return sorted({each.name for each in self.cache.iterdir()} - {"lock"})


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_what_the_user_names_is_taken_and_nothing_is_built(place: Place, tmp_path: Path) -> None:
    named = tmp_path / "named"
    named.mkdir()
    script(named / "kube-apiserver", "echo Kubernetes v1.36.1")
    script(named / "etcd", "")
    place.environ["KUBEBUILDER_ASSETS"] = str(named)
    assert place.provide().folder == named
    assert not place.fake.calls
    assert not place.cache.exists()


def test_what_the_user_names_wrongly_is_refused_rather_than_replaced(place: Place) -> None:
    place.environ["KUBEBUILDER_ASSETS"] = "/nowhere"
    with pytest.raises(InputError, match=r"^KUBEBUILDER_ASSETS: ") as refused:
        place.provide()
    assert not isinstance(refused.value, Unavailable)


def test_a_build_leaves_the_four_programs_and_the_log_and_nothing_else(place: Place) -> None:
    assets = place.provide()
    assert assets.minor == 20
    assert place.kept == [assets.folder.name]
    assert sorted(each.name for each in assets.folder.iterdir()) == ["build.log", "etcd", "kube-apiserver", "kube-scheduler", "kubectl"]
    assert "+ make" in (assets.folder / "build.log").read_text()
    assert "built from Debian's packages" in place.said[0]
    assert all(line.startswith("[") and " s] " in line for line in place.said[1:])


def test_what_was_built_is_found_again_without_root_and_without_debian(place: Place) -> None:
    built = place.provide()
    before = place.fake.calls
    place.fake.os_release.unlink()
    assert place.provide(root=False) == built
    assert place.fake.calls == before


@pytest.mark.parametrize("broken", ["kube-apiserver", "etcd"])
def test_a_cached_folder_that_lacks_a_program_is_built_again(place: Place, broken: str) -> None:
    built = place.provide()
    (built.folder / broken).unlink()
    assert place.provide() == built
    assert (built.folder / broken).is_file()


def test_a_half_built_folder_is_never_taken_and_goes_before_the_next_build(place: Place) -> None:
    built = place.provide()
    half = place.cache / ".building-half"
    shutil.move(built.folder, half)
    assert place.provide() == built
    assert place.kept == [built.folder.name]


def test_what_another_recipe_built_is_not_taken(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.provide()
    monkeypatch.setattr("tools.kubernetes.provide.recipe", lambda _targets: "another")
    assert place.provide().folder.name.endswith("-another")


def test_a_build_that_is_under_way_is_waited_for_and_its_outcome_taken(place: Place) -> None:
    built = place.provide()
    calls = place.fake.calls
    away = place.cache / "not-there-yet"
    built.folder.rename(away)
    with (place.cache / "lock").open("wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)

        def say(line: str) -> None:
            assert "another build is under way" in line
            away.rename(built.folder)
            fcntl.flock(other, fcntl.LOCK_UN)

        assert provide(place.environ, say, place.fake.machine()) == built
    assert place.fake.calls == calls


def test_a_system_that_is_not_debian_is_told_what_to_set(place: Place) -> None:
    place.fake.os_release.write_text("ID=ubuntu\nID_LIKE=debian\n")
    with pytest.raises(Unavailable, match=r"not Debian, where root can build one: set KUBEBUILDER_ASSETS .* KUBECONFIG_E2E") as told:
        place.provide()
    assert "\n" not in str(told.value)
    assert not place.cache.exists()


def test_a_user_who_is_not_root_is_told_what_to_set(place: Place) -> None:
    with pytest.raises(Unavailable, match="only root can build one: set KUBEBUILDER_ASSETS"):
        place.provide(root=False)
    assert not place.fake.calls


def test_a_debian_whose_source_is_only_that_of_kubectl_is_no_failure_but_told(place: Place) -> None:
    """As in Debian 13 and later."""
    place.fake.program("dpkg-source", 'mkdir -p "$3/cmd/kubectl"')
    with pytest.raises(Unavailable, match=r"source package kubernetes_1 has no cmd/kube-apiserver and no .*: set KUBEBUILDER_ASSETS"):
        place.provide()
    assert not [call for call in place.fake.calls if call.startswith("make")]
    assert not [name for name in place.kept if name.startswith((".building", "kubernetes"))]


def test_a_full_disk_is_noticed_before_anything_is_done(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = SimpleNamespace(free=1_000_000_000)
    monkeypatch.setattr("tools.kubernetes.provide.shutil.disk_usage", lambda path: usage)
    with pytest.raises(Unavailable, match=r"has 1\.0 GB free where a build needs 5 GB"):
        place.provide()
    assert not place.fake.calls


def test_a_cache_that_cannot_be_written_is_one_line(place: Place, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    place.environ["XDG_CACHE_HOME"] = str(tmp_path / "file")
    with pytest.raises(InputError, match="file/placewright: Not a directory"):
        place.provide()


def test_a_relative_cache_folder_is_ignored_as_the_specification_says() -> None:
    assert cache_folder({"XDG_CACHE_HOME": "here", "HOME": "/home/a"}) == Path("/home/a/.cache/placewright")
    assert cache_folder({"XDG_CACHE_HOME": "/cache", "HOME": "/home/a"}) == Path("/cache/placewright")


def test_a_failed_build_leaves_its_log_and_no_folder(place: Place) -> None:
    place.fake.program("make", "echo compiling; echo 'no space left' >&2; exit 2")
    with pytest.raises(BuildFailed) as failed:
        place.provide()
    first, *last = str(failed.value).splitlines()
    log = place.cache / "build.log"
    step = "make WHAT=cmd/kube-apiserver cmd/kube-scheduler"
    assert first == f"the build of Kubernetes failed: {step} ended with 2 (the whole output: {log})"
    assert last[-3:-1] == ["compiling", "no space left"]
    assert "set KUBEBUILDER_ASSETS" in last[-1]
    assert place.kept == ["build.log"]


@pytest.mark.parametrize(
    ("program", "lines", "why"),
    [
        ("apt-get", "exit 100", "apt-get update ended with 100"),
        ("dpkg-deb", "exit 2", "dpkg-deb .* ended with 2"),
        ("dpkg-source", "exit 25", "dpkg-source .* ended with 25"),
        ("make", "exit 0", "kube-apiserver was not made"),
        ("make", "kill -9 $$", "make .* ended with -9"),
    ],
)
def test_each_step_that_fails_is_named(place: Place, program: str, lines: str, why: str) -> None:
    place.fake.program(program, lines)
    with pytest.raises(BuildFailed, match=why):
        place.provide()
    assert place.kept == ["build.log"]


def test_a_build_whose_programs_do_not_run_is_a_failed_build(place: Place) -> None:
    place.fake.program("make", "mkdir -p _output/local/go/bin; for n in apiserver scheduler; do touch _output/local/go/bin/kube-$n; done")
    with pytest.raises(BuildFailed, match="kube-apiserver is not executable"):
        place.provide()
    assert place.kept == ["build.log"]


@on_linux
def test_an_interrupted_build_ends_what_it_runs_and_leaves_no_folder(place: Place) -> None:
    # The script interrupts whoever runs it, once that one waits, then would go on for long.
    asleep = 'until [ "$(sed "s/.*) //" /proc/$PPID/stat | cut -c 1)" = S ]; do :; done'
    place.fake.program("make", f'echo $$ > "$OUT/pid"; {asleep}; kill -INT $PPID; sleep 1000')
    # A shell that started us in the background may have had SIGINT ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            place.provide()
    finally:
        signal.signal(signal.SIGINT, before)
    with pytest.raises(ProcessLookupError):
        os.kill(int((place.fake.folder / "pid").read_text()), 0)
    assert place.kept == ["build.log"]


@on_linux
def test_the_compilers_keep_the_lock_so_that_nobody_builds_beside_them_when_we_are_killed(place: Place) -> None:
    place.fake.program("make", 'ls -l /proc/$$/fd > "$OUT/open"; exit 2')
    with pytest.raises(BuildFailed):
        place.provide()
    assert f"-> {place.cache}/lock\n" in (place.fake.folder / "open").read_text()


def test_only_the_tools_that_are_missing_are_installed(place: Place) -> None:
    place.provide()
    assert not [call for call in place.fake.calls if " install " in call]


def test_tools_that_are_missing_are_installed(place: Place) -> None:
    place.fake.without("go")
    place.fake.without("jq")
    place.provide()
    (install,) = [call for call in place.fake.calls if " install " in call]
    assert install.endswith("install --yes --no-install-recommends golang-go jq")
    assert any("installing golang-go, jq" in line for line in place.said)


def test_apt_gets_sources_of_its_own_and_etcd_is_never_installed(place: Place) -> None:
    place.provide()
    apt = [call for call in place.fake.calls if call.startswith("apt-get")]
    assert apt
    assert all("Dir::Etc::sourcelist=/dev/null" in call and f"Dir::State::lists={place.cache}" in call for call in apt)
    assert not [call for call in apt if "install" in call and "etcd" in call]


def test_sources_of_both_forms_get_source_packages(tmp_path: Path) -> None:
    apt, parts = tmp_path / "apt", tmp_path / "parts"
    (apt / "sources.list.d").mkdir(parents=True)
    parts.mkdir()
    (apt / "sources.list.d" / "debian.sources").write_text("Enabled: no\ntypes: deb\nURIs: http://a.example/debian\n")
    entry = " [trusted=no]  http://ftp.de.debian.org/debian bookworm main  # near\n"
    (apt / "sources.list").write_text(f"# deb http://off.example x\ndeb{entry}")
    with_source_packages(apt, parts)
    assert (parts / "sources.list").read_text() == f"# deb http://off.example x\ndeb{entry}deb-src{entry}"
    assert (parts / "debian.sources").read_text() == "Enabled: no\nTypes: deb deb-src\nURIs: http://a.example/debian\n"


def test_the_vendored_reflect2_is_exchanged_without_its_tests(place: Place) -> None:
    place.provide()
    assert (place.fake.folder / "reflect2").read_text().split() == ["go_above_118.go", "new.go"]


def test_a_vendored_reflect2_that_is_new_enough_stays(place: Place) -> None:
    vendored = "vendor/github.com/modern-go/reflect2"
    theirs = f'touch "$3/{vendored}/go_above_118.go" "$3/{vendored}/theirs.go"'
    place.fake.program("dpkg-source", f'mkdir -p "$3/cmd/kube-apiserver" "$3/cmd/kube-scheduler" "$3/{vendored}"; {theirs}')
    place.provide()
    assert (place.fake.folder / "reflect2").read_text().split() == ["go_above_118.go", "theirs.go"]


def test_the_compilers_environment_has_nothing_of_ours(place: Place) -> None:
    place.environ |= {"MAKEFLAGS": "ARGS=-x", "GOFLAGS": "-mod=mod", "GOROOT": "/elsewhere", "KUBE_GIT_VERSION": "v9"}
    place.provide()
    names = dict(line.partition("=")[::2] for line in (place.fake.folder / "environment").read_text().splitlines())
    assert not {"MAKEFLAGS", "GOROOT", "KUBE_GIT_VERSION", "XDG_CACHE_HOME"} & set(names)
    assert names["GOFLAGS"] == ""
    assert all(names[name].startswith(str(place.cache)) for name in ("HOME", "GOCACHE", "GOPATH", "TMPDIR"))


def test_the_command_prints_the_folder_alone_on_stdout(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(place.environ, place.fake.machine()) == 0
    said = capsys.readouterr()
    assert said.out == f"{place.provide().folder}\n"
    assert "compiling" in said.err


def test_the_commands_exit_code_tells_what_was_the_matter(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert main({"KUBEBUILDER_ASSETS": "/nowhere"}, place.fake.machine()) == 2
    assert main(place.environ, place.fake.machine(root=False)) == 3
    place.fake.program("make", "exit 2")
    assert main(place.environ, place.fake.machine()) == 1
    assert capsys.readouterr().out == ""


def test_pytest_asked_for_a_real_server_and_given_none_says_so_in_one_line() -> None:
    environ = {name: value for name, value in os.environ.items() if name not in {"KUBEBUILDER_ASSETS", "KUBECONFIG_E2E"}}
    command = [sys.executable, "-m", "pytest", "--real", "--collect-only", "-p", "no:cacheprovider", "tests/contract"]
    run = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    assert run.returncode == 4
    assert run.stderr.strip() == "ERROR: --real needs KUBEBUILDER_ASSETS or KUBECONFIG_E2E; `make e2e` sees to that"
