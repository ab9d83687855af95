"""Programs in a folder that somebody named."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.controlplane.machines import script
from placewright.api.bad_input import InputError
from placewright_lab.controlplane.assets import from_environment, from_folder


def filled(folder: Path, version: str = "Kubernetes v1.31.0") -> Path:
    script(folder / "kube-apiserver", f"echo {version}")
    script(folder / "etcd", "")
    return folder


def test_the_version_comes_from_the_program_and_optional_ones_may_be_missing(tmp_path: Path) -> None:
    assets = from_folder(filled(tmp_path), "here")
    assert (assets.minor, assets.kubectl, assets.kube_scheduler) == (31, None, None)
    script(tmp_path / "kubectl", "")
    assert assets.kubectl == tmp_path / "kubectl"


def test_nothing_named_is_nothing_found() -> None:
    assert from_environment({}) is None
    assert from_environment({"KUBEBUILDER_ASSETS": ""}) is None


@pytest.mark.parametrize("missing", ["kube-apiserver", "etcd"])
def test_a_missing_program_is_named_with_the_variable(tmp_path: Path, missing: str) -> None:
    (filled(tmp_path) / missing).unlink()
    with pytest.raises(InputError, match=f"^KUBEBUILDER_ASSETS: found .*there is no {missing}"):
        from_environment({"KUBEBUILDER_ASSETS": str(tmp_path)})


@pytest.mark.parametrize("name", ["kube-apiserver", "etcd"])
def test_a_program_that_is_not_executable_is_named(tmp_path: Path, name: str) -> None:
    (filled(tmp_path) / name).chmod(0o644)
    with pytest.raises(InputError, match=f"^here: .*/{name} is not executable$"):
        from_folder(tmp_path, "here")


@pytest.mark.parametrize("said", ["", "hello", "v1.x", "'one\\ntwo'"])
def test_something_else_by_that_name_is_refused_in_one_line(tmp_path: Path, said: str) -> None:
    with pytest.raises(InputError, match=r"--version: found .*allowed a version such as v1\.31\.0") as refused:
        from_folder(filled(tmp_path, said), "here")
    assert "\n" not in str(refused.value)


def test_a_program_that_fails_is_refused(tmp_path: Path) -> None:
    script(filled(tmp_path) / "kube-apiserver", "exit 7")
    with pytest.raises(InputError, match=r"does not run: .*7"):
        from_folder(tmp_path, "here")
