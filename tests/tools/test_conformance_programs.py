"""Which programs a conformance run takes, what it says when one is missing, and how it runs e2e.test; that one is a script here."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from lab.controlplane.machines import FakeMachine, script
from placewright.api.bad_input import InputError
from placewright_lab.controlplane.assets import Unavailable
from placewright_lab.controlplane.server import ControlPlaneFailed
from tools.conformance import program as conformance_program
from tools.conformance.__main__ import _parser, _run, main
from tools.conformance.program import Cluster, E2eTest
from tools.conformance.programs import ConformancePrograms, programs
from tools.conformance.specs import SpecOutcome, SpecVerdict
from tools.kubernetes.provide import provide

REPORT = '<testsuite><testcase name="[It] a passes" time="1"/><testcase name="[It] b"><skipped message="skipped"/></testcase></testsuite>'
#: Writes its flags and a report, as e2e.test does.
WRITES = f"""
for each in "$@"; do case "$each" in
  --version) echo v1.36.2; exit ;;
  --report-dir=*) folder=${{each#*=}} ;;
esac; done
printf '%s\\n' "$@" > "$folder/flags"
printf '%s' '{REPORT}' > "$folder/junit_01.xml"
"""


def folder_of(path: Path, *names: str) -> Path:
    path.mkdir(exist_ok=True)
    for name in names:
        script(path / name, "echo Kubernetes v1.36.2")
    return path


def nobody_speaks(line: str) -> None:
    raise AssertionError(line)


# --- where they come from ---


def test_all_of_them_may_be_in_one_folder(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "k8s", "kube-apiserver", "etcd", "e2e.test", "kube-controller-manager")
    found = programs({"KUBEBUILDER_ASSETS": str(folder)}, None, nobody_speaks)
    assert (found.e2e_test, found.controller_manager) == (folder / "e2e.test", folder / "kube-controller-manager")


def test_the_test_program_may_be_elsewhere_with_a_controller_manager_beside_it(tmp_path: Path) -> None:
    assets = folder_of(tmp_path / "k8s", "kube-apiserver", "etcd")
    tests = folder_of(tmp_path / "tests", "e2e.test", "kube-controller-manager")
    found = programs({"KUBEBUILDER_ASSETS": str(assets), "E2E_TEST": str(tests / "e2e.test")}, None, nobody_speaks)
    assert isinstance(found, ConformancePrograms)
    assert found.controller_manager == tests / "kube-controller-manager"


def test_what_is_asked_for_on_the_command_line_comes_first(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "k8s", "kube-apiserver", "etcd", "e2e.test", "kube-controller-manager")
    other = folder_of(tmp_path / "other", "e2e.test") / "e2e.test"
    environ = {"KUBEBUILDER_ASSETS": str(folder), "E2E_TEST": str(folder / "e2e.test")}
    assert programs(environ, other, nobody_speaks).e2e_test == other


@pytest.mark.parametrize(
    ("there", "said"),
    [
        (("e2e.test",), "has a kube-controller-manager: put one of the same version into either"),
        (("kube-controller-manager",), "has no e2e.test: set E2E_TEST to one, as Kubernetes' test tarball has it"),
    ],
)
def test_a_missing_program_is_told_in_one_line_with_exit_code_3(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], there: tuple[str, ...], said: str
) -> None:
    folder = folder_of(tmp_path / "k8s", "kube-apiserver", "etcd", *there)
    assert main([], {"KUBEBUILDER_ASSETS": str(folder)}) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


def test_without_any_kubernetes_it_says_so_with_exit_code_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    machine = FakeMachine(tmp_path).machine(root=False)
    assert main([], {"XDG_CACHE_HOME": str(tmp_path)}, machine) == 3
    assert "no Kubernetes here, and only root can build one" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--e2e-test", "/nowhere/e2e.test"], "--e2e-test: /nowhere/e2e.test is not there"),
        (["--focus", "["], "--focus: found '['; allowed a regular expression"),
        (["--skip", "("], "--skip: found '('; allowed a regular expression"),
        (["--nodes", "0"], "--nodes: found 0; allowed 1 or more"),
        (["--minutes", "0"], "--minutes: found 0; allowed more than 0"),
        (["--scheduler", "kube-scheduler"], "has no kube-scheduler"),
    ],
)
def test_wrong_input_is_told_in_one_line_with_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    folder = folder_of(tmp_path / "k8s", "kube-apiserver", "etcd", "e2e.test", "kube-controller-manager")
    assert main(arguments, {"KUBEBUILDER_ASSETS": str(folder)}) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


def test_a_test_program_that_cannot_run_is_refused(tmp_path: Path) -> None:
    program = tmp_path / "e2e.test"
    program.write_text("")
    with pytest.raises(InputError, match=r"E2E_TEST: .* is not executable"):
        programs({"E2E_TEST": str(program)}, None, nobody_speaks)


# --- built from Debian's packages ---


def _unpacks(*folders: str) -> str:
    return "\n".join(f'mkdir -p "$3/{folder}"' for folder in ("cmd/kube-apiserver", "cmd/kube-scheduler", *folders))


def fake_debian(folder: Path) -> FakeMachine:
    fake = FakeMachine(folder)
    fake.program("dpkg-source", _unpacks("cmd/kube-controller-manager", "test/e2e"))
    names = "kube-apiserver kube-scheduler kube-controller-manager e2e.test"
    made = r"printf '#!/bin/sh\necho Kubernetes v1.20.2\n' > $name; chmod +x $name"
    fake.program("make", f"mkdir -p _output/local/go/bin; cd _output/local/go/bin; for name in {names}; do {made}; done")
    return fake


def test_they_are_built_from_the_same_source_package_and_found_again(tmp_path: Path) -> None:
    fake, said = fake_debian(tmp_path), list[str]()
    environ = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    built = programs(environ, None, said.append, fake.machine())
    assert built.assets.minor == 20
    made = next(call for call in fake.calls if call.startswith("make "))
    assert made == "make WHAT=cmd/kube-apiserver cmd/kube-scheduler cmd/kube-controller-manager test/e2e/e2e.test"
    calls = fake.calls
    assert programs(environ, None, nobody_speaks, fake.machine()) == built
    assert provide(environ, nobody_speaks, fake.machine()) == built.assets, "the tests on a real API server need nothing beside these"
    assert fake.calls == calls


def test_what_was_built_without_them_is_not_enough(tmp_path: Path) -> None:
    fake = fake_debian(tmp_path)
    environ = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    provide(environ, lambda _: None, fake.machine())
    programs(environ, None, lambda _: None, fake.machine())
    assert len([call for call in fake.calls if call.startswith("make ")]) == 2


def test_a_source_package_without_the_tests_is_no_failure_but_told(tmp_path: Path) -> None:
    fake = fake_debian(tmp_path)
    fake.program("dpkg-source", _unpacks("cmd/kube-controller-manager"))
    with pytest.raises(Unavailable, match=r"has no test/e2e/e2e\.test to build"):
        programs({"XDG_CACHE_HOME": str(tmp_path / "cache")}, None, lambda _: None, fake.machine())


# --- how e2e.test is run ---


@pytest.fixture(autouse=True)
def _looked_at_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs here are done at once; real ones take minutes."""
    monkeypatch.setattr(conformance_program, "_LOOK_SECONDS", 0.01)


def e2e_test(folder: Path, lines: str) -> E2eTest:
    script(folder / "e2e.test", lines)
    return E2eTest(folder / "e2e.test", Cluster(folder / "kubeconfig", 3, None), folder / "output")


def all_is_well() -> None:
    """The cluster goes on."""


async def test_what_is_skipped_in_a_dry_run_does_not_match(tmp_path: Path) -> None:
    assert await e2e_test(tmp_path, WRITES).specs("a", all_is_well) == ["a passes"]
    assert "--ginkgo.dry-run" in (tmp_path / "output" / "list" / "flags").read_text().splitlines()


async def test_it_is_told_what_to_run_and_what_to_skip(tmp_path: Path) -> None:
    found = await e2e_test(tmp_path, WRITES).run("a|b", ["c", "d$"], 60, all_is_well)
    assert found == [SpecOutcome("a passes", SpecVerdict.PASSED, 1.0), SpecOutcome("b", SpecVerdict.SKIPPED)]
    flags = (tmp_path / "output" / "run" / "flags").read_text().splitlines()
    assert {"--ginkgo.focus=a|b", "--ginkgo.skip=c|d$", f"--kubeconfig={tmp_path / 'kubeconfig'}"} <= set(flags)


async def test_old_versions_spell_flags_otherwise(tmp_path: Path) -> None:
    old = e2e_test(tmp_path, WRITES.replace("v1.36.2", "v1.20.2"))
    await old.specs("a", all_is_well)
    assert {"--ginkgo.dryRun", "--ginkgo.noColor"} <= set((tmp_path / "output" / "list" / "flags").read_text().splitlines())


async def test_an_end_without_a_report_tells_its_last_words(tmp_path: Path) -> None:
    program = e2e_test(tmp_path, 'if [ "$1" = --version ]; then echo v1.36.2; exit; fi; echo out of luck; exit 7')
    with pytest.raises(ControlPlaneFailed, match=r"e2e\.test ended with 7 and left no report: out of luck"):
        await program.run("a", [], 60, all_is_well)


LASTS = """if [ "$1" = --version ]; then echo v1.36.2; exit; fi
echo $$ > pid; trap 'exit 1' TERM; while :; do sleep 0.05; done"""


async def test_it_is_ended_when_its_time_is_over(tmp_path: Path) -> None:
    program = e2e_test(tmp_path, LASTS)
    with pytest.raises(ControlPlaneFailed, match=r"e2e\.test was not done after 0 s"):
        await program.run("a", [], 0.0, all_is_well)
    assert gone(tmp_path / "output" / "run" / "pid")


async def test_it_is_ended_when_a_part_of_the_cluster_has_ended(tmp_path: Path) -> None:
    program, pid = e2e_test(tmp_path, LASTS), tmp_path / "output" / "run" / "pid"

    def broken() -> None:
        if pid.exists() and pid.read_text():
            raise ControlPlaneFailed("etcd ended")

    with pytest.raises(ControlPlaneFailed, match="etcd ended"):
        await program.run("a", [], 60, broken)
    assert gone(pid)


async def test_it_is_ended_when_the_run_is_interrupted(tmp_path: Path) -> None:
    program, pid = e2e_test(tmp_path, LASTS), tmp_path / "output" / "run" / "pid"
    begun = asyncio.Event()
    running = asyncio.create_task(program.run("a", [], 60, lambda: begun.set() if pid.exists() and pid.read_text() else None))
    await asyncio.wait_for(begun.wait(), 30)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert gone(pid)


def gone(pid: Path) -> bool:
    """Whether a process whose number is in a file has ended; one that had no time to write it has."""
    if not pid.exists() or not pid.read_text().strip():
        return True
    try:
        os.kill(int(pid.read_text()), 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize("everything", [[], ["--all"]])
async def test_what_is_skipped_by_hand_is_not_run_and_told(tmp_path: Path, everything: list[str]) -> None:
    args = _parser().parse_args(["--focus", "a|b", "--skip", "^a", *everything])
    told = await _run(args, e2e_test(tmp_path, WRITES), lambda: None, frozenset())
    assert SpecOutcome("a passes", SpecVerdict.LEFT_OUT, why="--skip") in told
    assert [each.spec for each in told].count("a passes") == 1
