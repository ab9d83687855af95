"""Where the lab finds the control plane's programs: named, built by the tool of this checkout, or nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.controlplane.machines import FakeMachine
from placewright.api.bad_input import InputError
from placewright_lab.controlplane import assets
from placewright_lab.controlplane.assets import Unavailable
from tools.kubernetes.provide import provide as build


def test_an_installed_lab_without_the_tool_says_which_variable_to_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assets, "_CHECKOUT", tmp_path)
    with pytest.raises(Unavailable, match=r"an installed lab has no tools/kubernetes.*: set KUBEBUILDER_ASSETS to a folder"):
        assets.provide({})
    assert assets.at_hand({}) is None


def test_programs_that_the_tool_built_are_found_in_a_checkout(tmp_path: Path) -> None:
    environ = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    assert assets.at_hand(environ) is None
    built = build(environ, lambda _: None, FakeMachine(tmp_path).machine())
    assert assets.at_hand(environ) == assets.provide(environ) == built


def test_a_tool_that_builds_nothing_has_told_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tools" / "kubernetes").mkdir(parents=True)
    (tmp_path / "tools" / "kubernetes" / "__main__.py").write_text("raise SystemExit('no compiler')")
    monkeypatch.setattr(assets, "_CHECKOUT", tmp_path)
    with pytest.raises(InputError, match="tools/kubernetes built nothing: set KUBEBUILDER_ASSETS"):
        assets.provide({})
    assert "no compiler" in capfd.readouterr().err
