"""The flags of `placewright run`: what reaches the operator, what a file adds, and what is refused before anything is reached."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
import yaml

from placewright.cli.main import main
from placewright.engine.companions import MakeCompanions, no_companions
from placewright.engine.options import EngineOptions
from placewright.handlers import operator
from placewright.serving import endpoints
from placewright.serving.endpoints import ServingOptions

CONFIGURATION = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
"""
SETTINGS = "clientConnection: {kubeconfig: /from/file, qps: 30, burst: 60}\nleaderElection: {leaderElect: false}\n"


class Started:
    """What the operator was started with."""

    kubeconfig: str | None
    context: str | None
    options: EngineOptions
    log_level: int

    def __call__(self, kubeconfig: str | None, context: str | None, options: EngineOptions, make_companions: MakeCompanions) -> int:
        self.kubeconfig, self.context, self.options, self.log_level = kubeconfig, context, options, logging.getLogger().level
        return 0


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    made = Started()
    monkeypatch.setattr(operator, "run", made)
    return made


@pytest.fixture
def never(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: Any) -> int:
        raise AssertionError("the operator was started")

    monkeypatch.setattr(operator, "run", run)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "scheduler.yaml"


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["run", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    return line.removeprefix("placewright: error: ")


def test_without_flags_nothing_is_changed(started: Started) -> None:
    assert main(["run"]) == 0
    assert (started.kubeconfig, started.context, started.log_level) == (None, None, logging.INFO)
    assert (started.options.leader_elect, started.options.profiles, started.options.qps) == (True, None, 0)


@pytest.mark.parametrize(
    ("words", "elects"),
    [
        (["--leader-elect"], True), (["--leader-elect=true"], True), (["--leader-elect=false"], False), (["--leader-elect=0"], False),
        (["--leader-elect", "false"], False),
    ],
)  # fmt: skip
def test_leader_elect_is_read_as_go_reads_it(words: list[str], elects: bool, started: Started) -> None:
    assert main(["run", *words]) == 0
    assert started.options.leader_elect is elects


def test_a_rate_without_a_burst_lets_twice_as_many_go_at_once(started: Started) -> None:
    main(["run", "--kube-api-qps", "20"])
    assert (started.options.qps, started.options.burst) == (20, 40)
    main(["run", "--kube-api-qps=0.2"])
    assert (started.options.qps, started.options.burst) == (0.2, 1)
    main(["run", "--kube-api-qps=20", "--kube-api-burst=25"])
    assert (started.options.qps, started.options.burst) == (20, 25)


@pytest.mark.parametrize(("words", "seconds"), [([], 15), (["4s"], 4), (["1m30s"], 90)])
def test_the_lead_of_a_replica_that_vanished_lasts_as_long_as_is_said(words: list[str], seconds: int, started: Started) -> None:
    main(["run", *(f"--leader-elect-lease-duration={word}" for word in words)])
    assert started.options.peering_lifetime == seconds


@pytest.mark.parametrize("text", ["15", "1s", "2h", "1500ms", "-3s", "soon"])
def test_a_lifetime_that_cannot_be_is_one_line(text: str, never: None, capsys: pytest.CaptureFixture[str]) -> None:
    error = refused(capsys, f"--leader-elect-lease-duration={text}")
    assert f"found {text!r}; allowed whole seconds from 2s to 3600s, such as 15s" in error


@pytest.mark.parametrize(("words", "level"), [(["-v", "2"], logging.INFO), (["-v=4"], logging.DEBUG), (["--v=10"], logging.DEBUG)])
def test_verbosity_is_klog_s(words: list[str], level: int, started: Started) -> None:
    main(["run", *words])
    assert started.log_level == level


class Opened:
    """What was to be served."""

    def __init__(self) -> None:
        self.options = ServingOptions(port=None)

    def __call__(self, options: ServingOptions) -> MakeCompanions:
        self.options = options
        return no_companions


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, started: Started) -> Opened:
    made = Opened()
    monkeypatch.setattr(endpoints, "endpoints", made)
    return made


def test_https_is_served_where_kube_scheduler_serves_it(opened: Opened) -> None:
    assert main(["run"]) == 0
    assert (opened.options.address, opened.options.port, opened.options.health_port) == ("0.0.0.0", 10259, None)
    assert opened.options.certificate is None


def test_where_and_with_what_is_served_can_be_said(opened: Opened) -> None:
    files = ["--tls-cert-file=/c", "--tls-private-key-file=/k"]
    assert main(["run", "--secure-port=1234", "--bind-address=::1", "--health-port=1235", *files]) == 0
    assert (opened.options.address, opened.options.port, opened.options.health_port) == ("::1", 1234, 1235)
    assert opened.options.certificate == (Path("/c"), Path("/k"))


def test_the_console_is_off_unless_asked_for_and_needs_https(opened: Opened, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run"]) == 0
    assert not opened.options.console
    assert main(["run", "--console"]) == 0
    assert opened.options.console
    error = refused(capsys, "--console", "--secure-port=0")
    assert error == "--console: found without HTTPS (--secure-port=0); allowed with a --secure-port"


def test_port_0_is_none(opened: Opened) -> None:
    assert main(["run", "--secure-port=0", "--health-port=0"]) == 0
    assert (opened.options.port, opened.options.health_port) == (None, None)


def test_endpoints_that_are_switched_off_are_no_matter(started: Started) -> None:
    assert main(["run", "--secure-port=0", "--bind-address=127.0.0.1", "--kubeconfig=/k", "--context=c"]) == 0
    assert (started.kubeconfig, started.context) == ("/k", "c")


def test_version_prints_it_and_ends(never: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--version"]) == 0
    assert capsys.readouterr().out.startswith("placewright ")


# --- a file -------------------------------------------------------------------------------------------------------------------------


def test_profiles_and_settings_come_from_the_file(file: Path, started: Started) -> None:
    file.write_text(CONFIGURATION + SETTINGS + "profiles: [{schedulerName: a}, {schedulerName: b}]\n")
    assert main(["run", "--config", str(file)]) == 0
    assert started.options.profiles is not None
    assert [profile.spec.scheduler_name for profile in started.options.profiles] == ["a", "b"]
    assert (started.kubeconfig, started.options.qps, started.options.burst, started.options.leader_elect) == ("/from/file", 30, 60, False)


def test_a_flag_goes_before_the_file(file: Path, started: Started) -> None:
    file.write_text(CONFIGURATION + SETTINGS)
    flags = ["--kubeconfig=/flag", "--kube-api-qps=5", "--kube-api-burst=7", "--leader-elect=true"]
    main(["run", "--config", str(file), *flags])
    assert (started.kubeconfig, started.options.qps, started.options.burst, started.options.leader_elect) == ("/flag", 5, 7, True)


def test_a_negative_rate_in_a_file_is_no_limit_as_for_client_go(file: Path, started: Started) -> None:
    file.write_text(CONFIGURATION + "clientConnection: {qps: -1}\n")
    main(["run", "--config", str(file)])
    assert started.options.qps == 0


def test_older_files_are_translated(file: Path, started: Started) -> None:
    file.write_text(CONFIGURATION.replace("/v1", "/v1beta1"))
    main(["run", "--config", str(file)])
    assert started.options.profiles is not None
    assert "NodePreferAvoidPods" in str(started.options.profiles[0].spec)


def test_what_a_file_says_to_nobody_is_mentioned(file: Path, started: Started, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(CONFIGURATION + "parallelism: 8\n")
    main(["run", "--config", str(file)])
    err = capsys.readouterr().err
    assert err == f"placewright: {file}: parallelism has no effect: all nodes are evaluated at once, on columns\n"


def test_what_the_file_comes_to_can_be_written(file: Path, never: None, tmp_path: Path) -> None:
    file.write_text(CONFIGURATION.replace("/v1", "/v1beta2") + SETTINGS)
    written = tmp_path / "written.yaml"
    assert main(["run", "--config", str(file), "--kube-api-qps=5", f"--write-config-to={written}"]) == 0
    document = yaml.safe_load(written.read_text())
    assert document["apiVersion"] == "kubescheduler.config.k8s.io/v1"
    assert document["clientConnection"] == {"kubeconfig": "/from/file", "qps": 5.0, "burst": 60}
    assert {"name": "TaintToleration", "weight": 1} in document["profiles"][0]["plugins"]["multiPoint"]["enabled"]


# --- what is refused ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--secure-port=70000"], "argument --secure-port: found '70000'; allowed a whole number from 0 to 65535"),
        (["--bind-address=everywhere"], "argument --bind-address: found 'everywhere'; allowed an IP address, such as 0.0.0.0"),
        (["--tls-cert-file=/x"], "--tls-cert-file, --tls-private-key-file: found one of them; allowed both, or neither"),
        (["--health-port=10259"], "--health-port: found 10259, which is --secure-port; allowed another port, or 0 for none"),
        (["--kube-api-burst=5"], "--kube-api-burst: found 5; allowed a burst beside a --kube-api-qps; without a rate there is no limit"),
        (["--write-config-to=/x"], "--write-config-to: nothing to write without --config; "),
        (["--leader-elect=maybe"], "argument --leader-elect: found 'maybe'; allowed true or false"),
        (["--kube-api-qps=fast"], "argument --kube-api-qps: found 'fast'; allowed a number from 0 (no limit) to 1000000"),
        (["--kube-api-qps=nan"], "argument --kube-api-qps: found 'nan'; allowed a number"),
        (["--config=/none.yaml"], "/none.yaml: cannot be read: No such file or directory"),
    ],
)
def test_a_flag_that_could_have_no_effect_is_one_line(words: list[str], line: str, never: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(capsys, *words).startswith(line)


def test_a_file_whose_pods_would_go_elsewhere_is_refused(file: Path, never: None, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(CONFIGURATION + "profiles: [{plugins: {filter: {enabled: [{name: Rack}]}}}]\n")
    line = refused(capsys, "--config", str(file))
    assert line.startswith(f"{file}: profiles[0].plugins.filter.enabled: Rack: no plugin of this name is installed here")
    assert line.endswith("allowed settings with a counterpart; placewright convert writes a file without the others")


def test_a_file_with_a_profile_that_is_wrong_is_refused(file: Path, never: None, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(CONFIGURATION + "profiles: [{percentageOfNodesToScore: 101}]\n")
    assert "spec.percentageOfNodesToScore: found 101" in refused(capsys, "--config", str(file))


def test_a_place_that_cannot_be_written_is_one_line(file: Path, never: None, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(CONFIGURATION)
    line = refused(capsys, "--config", str(file), "--write-config-to=/none/x.yaml")
    assert line == "--write-config-to: /none/x.yaml: cannot be written: No such file or directory"
