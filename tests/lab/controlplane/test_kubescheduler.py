"""What kube-scheduler is told."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from placewright_lab.controlplane.kubescheduler import KubeScheduler


def configuration(folder: Path, minor: int) -> dict[str, str]:
    KubeScheduler(folder / "kube-scheduler", minor, folder / "kubeconfig", folder)
    written: dict[str, str] = yaml.safe_load((folder / "kube-scheduler.yaml").read_text())
    return written


def test_versions_that_must_serve_plain_http_do_so_on_a_loopback_port_of_their_own(tmp_path: Path) -> None:
    written = configuration(tmp_path, 20)
    host, _, port = written["healthzBindAddress"].partition(":")
    assert host == "127.0.0.1"
    assert port not in {"0", "10251"}
    assert written["metricsBindAddress"] == written["healthzBindAddress"]


@pytest.mark.parametrize("minor", [22, 23, 36])
def test_later_versions_are_not_asked_for_plain_http(tmp_path: Path, minor: int) -> None:
    assert not {field for field in configuration(tmp_path, minor) if field.endswith("BindAddress")}


def test_a_profile_is_passed_on_under_the_name_that_pods_use(tmp_path: Path) -> None:
    plugins = {"score": {"enabled": [{"name": "SelectorSpread"}]}}
    KubeScheduler(tmp_path / "kube-scheduler", 20, tmp_path / "kubeconfig", tmp_path, profile={"schedulerName": "mine", "plugins": plugins})
    written = yaml.safe_load((tmp_path / "kube-scheduler.yaml").read_text())
    assert written["profiles"] == [{"plugins": plugins, "schedulerName": "mine"}]


def test_what_is_said_beside_the_profile_is_passed_on(tmp_path: Path) -> None:
    settings = {"percentageOfNodesToScore": 100, "extenders": [{"urlPrefix": "http://x"}]}
    KubeScheduler(tmp_path / "kube-scheduler", 20, tmp_path / "kubeconfig", tmp_path, settings=settings)
    written = yaml.safe_load((tmp_path / "kube-scheduler.yaml").read_text())
    assert written.items() >= settings.items()
    assert written["profiles"] == [{"schedulerName": "default-scheduler"}]
