"""The command itself: help, exit codes, and one line for whatever is wrong."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, entry_points
from pathlib import Path

import pytest

from lab.commands.scenarios import profile_file, scenario_file
from placewright import __version__
from placewright.cli.main import ENTRY_POINT_GROUP, Command, commands, main
from placewright.framework.distributions import COMMANDS, home_of


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    out, err = capsys.readouterr()
    assert out == ""
    return err.splitlines()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["fly"], "invalid choice: 'fly'"),
        (["demo", "--rate", "0"], "argument --rate: found '0'; allowed a whole number from 1 to 100000"),
        (["demo", "--rate", "\x1b[2J"], "found '\\x1b[2J'; allowed"),
        (["sandbox", "--port", "65536"], "argument --port: found '65536'; allowed a whole number from 0 to 65535"),
        (["demo", "--what"], "unrecognized arguments: --what"),
        (["demo", "--pods", "/nowhere/at-all.yaml"], "/nowhere/at-all.yaml: cannot be read: No such file or directory"),
    ],
)
def test_wrong_arguments_are_one_line_and_exit_code_2(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    said = lines(capsys)
    assert len(said) == 1
    assert said[0].startswith("placewright: error: ")
    assert message in said[0]
    assert said[0].isprintable()


def test_a_wrong_manifest_is_one_line_and_exit_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: 5}\n")
    assert main(["demo", "--pods", str(file)]) == 2
    assert lines(capsys) == [f"placewright: error: {file}: document 1 (Pod/p): spec.containers: found 5; allowed a list or nothing"]


def test_a_kubeconfig_that_is_not_there_is_one_line_and_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--kubeconfig", "/nowhere/config"]) == 2
    said = lines(capsys)
    assert len(said) == 1
    assert "/nowhere/config" in said[0]


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    for command in ("run", "sandbox", "demo", "version"):
        assert f"\n    {command} " in out


def test_version_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version"]) == 0
    assert capsys.readouterr().out.startswith("placewright ")


def test_a_command_without_its_library_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.delitem(sys.modules, "placewright_lab.report.page", raising=False)
    words = ["compare", "-f", str(scenario_file(tmp_path)), "--profile", str(profile_file(tmp_path, "plain"))]
    assert main([*words, "--report", str(tmp_path / "out.html")]) == 2
    assert lines(capsys) == ["placewright: error: placewright compare: jinja2 is not installed"]
    assert not (tmp_path / "out.html").exists()


def test_help_names_a_command_that_cannot_be_loaded_and_why(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def missing() -> Command:
        raise ModuleNotFoundError(name="jsonpatch")

    there = {**commands(), "sandbox": missing}
    monkeypatch.setattr("placewright.cli.main.commands", lambda: there)
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "sandbox not here: jsonpatch is not installed simulate" in out
    assert "simulate place pods" in out
    assert main(["sandbox"]) == 2
    assert lines(capsys) == ["placewright: error: placewright sandbox: jsonpatch is not installed"]


def test_a_module_of_ours_that_is_missing_is_a_defect_and_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Command:
        raise ModuleNotFoundError(name="kubesandbox.server")

    there = {**commands(), "sandbox": missing}
    monkeypatch.setattr("placewright.cli.main.commands", lambda: there)
    with pytest.raises(ModuleNotFoundError):
        main(["sandbox"])


@pytest.mark.parametrize("command", sorted(each for names in COMMANDS.values() for each in names))
def test_a_command_of_a_distribution_that_is_not_installed_says_what_to_install(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("placewright.cli.main.entry_points", lambda group: ())
    monkeypatch.setattr("placewright.framework.distributions.version", not_installed)
    assert main([command, "--help"]) == 2
    home = f"placewright-{home_of(command)}"
    how = f"in a clone of Placewright {__version__}, run pip install . {'./console' if command == 'console' else './console ./lab'}"
    assert lines(capsys) == [f"placewright: error: placewright {command}: {home} is not installed: {how}"]


def not_installed(name: str) -> str:
    raise PackageNotFoundError(name)


def test_the_operator_knows_the_commands_of_each_distribution() -> None:
    declared = {each.name: each.dist.name for each in entry_points(group=ENTRY_POINT_GROUP) if each.dist is not None}
    assert {command: f"placewright-{home_of(command)}" for command in declared} == declared
    assert declared.keys() == {each for names in COMMANDS.values() for each in names}
