"""The options of `placewright run` about the webhook: what they come to, and what is refused in one line."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from placewright.api.bad_input import InputError
from placewright.cli.runflags import add_admission_options, admission_options
from placewright.engine.options import AdmissionOptions


def parsed(*words: str) -> AdmissionOptions | None:
    parser = argparse.ArgumentParser()
    add_admission_options(parser)
    return admission_options(parser.parse_args(words))


def test_it_is_off_unless_somebody_asks_for_it() -> None:
    assert parsed() is None
    assert parsed("--admission", "off", "--admission-service", "nonsense") is None


def test_an_address_is_enough() -> None:
    assert parsed("--admission", "10.0.0.1:9443") == AdmissionOptions("10.0.0.1", 9443)
    assert parsed("--admission", "[::1]:9443") == AdmissionOptions("::1", 9443)


def test_everywhere_is_fine_behind_a_service_or_when_somebody_else_keeps_the_configuration(tmp_path: Path) -> None:
    for name in ("tls.crt", "tls.key"):
        tmp_path.joinpath(name).touch()
    found = parsed("--admission", ":9443", "--admission-service", "placewright/webhook", "--admission-certificates", str(tmp_path))
    assert found == AdmissionOptions("0.0.0.0", 9443, tmp_path, ("placewright", "webhook", 443))
    assert parsed("--admission", ":9443", "--admission-configuration", "") == AdmissionOptions("0.0.0.0", 9443, configuration="")


def test_beside_a_file_of_profiles_there_is_nothing_to_check() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--config")
    add_admission_options(parser)
    with pytest.raises(InputError, match="off, beside --config"):
        admission_options(parser.parse_args(["--config", "file.yaml", "--admission", "10.0.0.1:9443"]))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--admission", "9443"], "--admission: found '9443'; allowed off, or an IP address and a port"),
        (["--admission", "10.0.0.1:0"], "--admission: found '10.0.0.1:0'"),
        (["--admission", "10.0.0.1:65536"], "--admission: found"),
        (["--admission", "10.0.0.256:9443"], "--admission: found"),
        (["--admission", ":9443"], "which the API server cannot call"),
        (["--admission", ":9443", "--admission-service", "webhook"], "found 'webhook'; allowed a namespace and a name"),
        (["--admission", ":9443", "--admission-service", "a/b:0"], "--admission-service: found 'a/b:0'"),
        (["--admission", "10.0.0.1:1", "--admission-certificates", "/nowhere"], "allowed a folder with tls.crt and tls.key in it"),
    ],
)
def test_what_cannot_work_is_refused(words: list[str], said: str) -> None:
    with pytest.raises(InputError) as refused:
        parsed(*words)
    assert said in str(refused.value)
