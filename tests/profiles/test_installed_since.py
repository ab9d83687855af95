"""A plugin that was installed while the scheduler runs: it is not known, and what to do is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from placewright.framework.registry import InstalledPlugins
from placewright.plugins.catalog import in_tree
from placewright.profiles.problem import ProfileError
from placewright.profiles.resolve import resolve
from profiles.makers import a_profile


def test_a_plugin_that_was_installed_since_the_start_is_found_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "Sleepy" not in InstalledPlugins()
    about = tmp_path / "sleepy-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: sleepy\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[placewright.plugins]\nnap = sleepy:Sleepy\n")
    assert "Sleepy" in InstalledPlugins()
    assert "Drowsy" not in InstalledPlugins()
    spec = {"plugins": {"multiPoint": {"enabled": [{"name": "Sleepy"}]}}, "weights": {"Sleepy": 2}}
    with pytest.raises(ProfileError) as refused:
        resolve(a_profile({"schedulerName": "x", **spec}), in_tree())
    said = "allowed a known plugin; one of this name was installed after this process began: restart it to load that"
    assert all(said in line for line in str(refused.value).splitlines() if "Sleepy" in line)
    assert said in str(refused.value)
