"""What kube-scheduler is told."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from placewright_lab.controlplane.kubescheduler import KubeScheduler, configuration
from placewright_lab.controlplane.server import Child

KUBECONFIG = Path("kubeconfig")


def test_versions_that_must_serve_plain_http_do_so_on_a_loopback_port_of_their_own() -> None:
    written = configuration(20, KUBECONFIG)
    host, _, port = written["healthzBindAddress"].partition(":")
    assert host == "127.0.0.1"
    assert port not in {"0", "10251"}
    assert written["metricsBindAddress"] == written["healthzBindAddress"]


@pytest.mark.parametrize("minor", [22, 23, 36])
def test_later_versions_are_not_asked_for_plain_http(minor: int) -> None:
    assert not {field for field in configuration(minor, KUBECONFIG) if field.endswith("BindAddress")}


def test_a_profile_is_passed_on_under_the_name_that_pods_use() -> None:
    plugins = {"score": {"enabled": [{"name": "SelectorSpread"}]}}
    written = configuration(20, KUBECONFIG, {"schedulerName": "mine", "plugins": plugins})
    assert written["profiles"] == [{"plugins": plugins, "schedulerName": "mine"}]


def test_what_is_said_beside_the_profile_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(Child, "__init__", lambda _self, _program, flags, _folder: told.extend(flags))
    settings = {"percentageOfNodesToScore": 100, "extenders": [{"urlPrefix": "http://x"}]}
    KubeScheduler(tmp_path / "kube-scheduler", 20, tmp_path / "kubeconfig", tmp_path, settings=settings, flags=["--v=10"])
    assert {"--v=10", "--port=0", f"--config={tmp_path / 'kube-scheduler.yaml'}"} <= set(told)
    written = yaml.safe_load((tmp_path / "kube-scheduler.yaml").read_text())
    assert written.items() >= settings.items()
    assert written["profiles"] == [{"schedulerName": "default-scheduler"}]
