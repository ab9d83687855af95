"""The files of a release that we write ourselves: the same input gives the same bytes, and they are what registries take."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from placewright import __version__
from tools.release.__main__ import main
from tools.release.chart import layout, package
from tools.release.fields import broken, current, parsed
from tools.release.files import ROOT, check_bill, image, readme_of, time, write_chart, write_sums

ABOUT = {"name": "web", "version": "1.2.3", "description": "A chart."}
FILES = {"web/values.yaml": b"a: 1\n", "web/Chart.yaml": yaml.safe_dump(ABOUT).encode(), "web/templates/a.yaml": b"kind: Pod\n"}
PUBLISHED = {"PLACEWRIGHT_REPOSITORY": "https://github.com/Someone/placewright/blob/main"}


def members(archive: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        return {member.name: opened.extractfile(member).read() for member in opened.getmembers()}  # type: ignore[union-attr]


def test_the_same_files_give_the_same_package_in_any_order() -> None:
    packed = package(FILES, 1_000)
    assert packed == package(dict(reversed(FILES.items())), 1_000)
    assert packed != package({**FILES, "web/values.yaml": b"a: 2\n"}, 1_000)
    assert members(gzip.decompress(packed)) == FILES


def test_all_times_are_the_one_that_is_given() -> None:
    packed = package(FILES, 1_000)
    assert int.from_bytes(packed[4:8], "little") == 1_000  # RFC 1952, 2.3: MTIME
    with tarfile.open(fileobj=io.BytesIO(packed)) as opened:
        assert {member.mtime for member in opened.getmembers()} == {1_000}


def test_a_layout_leads_from_the_tag_to_the_chart() -> None:
    """By the OCI's image layout specification 1.0, and the media types of Helm's registries."""
    found = members(layout(b"the package", ABOUT, 86_400))
    assert json.loads(found.pop("oci-layout")) == {"imageLayoutVersion": "1.0.0"}
    (tagged,) = json.loads(found.pop("index.json"))["manifests"]
    assert tagged["annotations"] == {"org.opencontainers.image.ref.name": "1.2.3"}
    assert all(name == f"blobs/sha256/{hashlib.sha256(blob).hexdigest()}" for name, blob in found.items())

    def blob(descriptor: dict[str, Any], kind: str) -> bytes:
        content = found[f"blobs/{descriptor['digest'].replace(':', '/')}"]
        assert (descriptor["mediaType"], descriptor["size"]) == (kind, len(content))
        return content

    manifest = json.loads(blob(tagged, "application/vnd.oci.image.manifest.v1+json"))
    assert manifest["annotations"]["org.opencontainers.image.created"] == "1970-01-02T00:00:00Z"
    assert json.loads(blob(manifest["config"], "application/vnd.cncf.helm.config.v1+json")) == ABOUT
    (layer,) = manifest["layers"]
    assert blob(layer, "application/vnd.cncf.helm.chart.content.v1.tar+gzip") == b"the package"


def test_our_chart_is_written_alike_twice_with_the_definitions_and_the_published_image(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        write_chart(tmp_path / name, 1_000, image(PUBLISHED))
    one, other = ({file.name: file.read_bytes() for file in (tmp_path / name).iterdir()} for name in ("one", "other"))
    assert one == other
    assert one.keys() == {f"placewright-{__version__}.tgz", f"placewright-chart-{__version__}.oci.tar"}
    found = members(one[f"placewright-{__version__}.tgz"])
    definition = (ROOT / "crds" / "schedulingprofiles.yaml").read_bytes()
    assert found["placewright/crds/schedulingprofiles.yaml"] == definition
    assert yaml.safe_load(found["placewright/values.yaml"])["image"]["repository"] == "ghcr.io/someone/placewright"


def test_the_chart_tells_artifact_hub_the_changes_of_its_version() -> None:
    """By Artifact Hub's page of Helm annotations."""
    annotations = yaml.safe_load((ROOT / "manifests" / "helm" / "placewright" / "Chart.yaml").read_text())["annotations"]
    changes = yaml.safe_load(annotations["artifacthub.io/changes"])
    section = (ROOT / "CHANGELOG.md").read_text().partition(f"## {__version__}")[2].partition("\n## ")[0]
    assert len(changes) == section.count("\n- ") > 0
    assert {each["kind"] for each in changes} <= {"added", "changed", "deprecated", "removed", "fixed", "security"}
    assert not any("](" in each["description"] for each in changes)
    assert "SchedulingProfile" in {each["kind"] for each in yaml.safe_load(annotations["artifacthub.io/crds"])}


def test_without_a_repository_the_image_is_the_one_that_is_built_here() -> None:
    assert image({}) == "placewright"


@pytest.mark.parametrize("repository", ["https://git.example.com/p/q", "github.com/p/q", "https://github.com/p"])
def test_a_repository_whose_registry_is_not_known_is_refused(repository: str) -> None:
    with pytest.raises(ValueError, match="PLACEWRIGHT_REPOSITORY: found"):
        image({"PLACEWRIGHT_REPOSITORY": repository})


def test_links_of_the_readme_lead_to_the_files_of_the_version() -> None:
    text = readme_of("Someone/placewright", "![map](docs/a.webp) [b](docs/b.md#c), [d](https://d.example), [e](#e)")
    at = f"v{__version__}/docs"
    here = "https://github.com/Someone/placewright"
    assert text == f"![map]({here}/raw/{at}/a.webp) [b]({here}/blob/{at}/b.md#c), [d](https://d.example), [e](#e)"


def test_the_time_is_taken_from_the_environment() -> None:
    assert time({"SOURCE_DATE_EPOCH": "1700000000"}) == 1_700_000_000


def test_the_sums_are_those_of_sha256sum(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"abc")
    (tmp_path / "a").write_bytes(b"")
    write_sums(tmp_path)
    assert (tmp_path / "SHA256SUMS").read_text().splitlines() == [
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  a",
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  b",
    ]


# --- bills of materials ------------------------------------------------------------------------------------------------------------------


METADATA = "Metadata-Version: 2.4\nName: web\nVersion: 1.2.3\nLicense-Expression: Apache-2.0\n"


def bill_of(name: str = "web", version: str = "1.2.3", licence: str = "Apache-2.0", form: str = "CycloneDX") -> dict[str, Any]:
    """As cyclonedx-py writes it, so far as a wheel can tell the same."""
    return {
        "bomFormat": form,
        "metadata": {"component": {"name": name, "version": version, "licenses": [{"license": {"id": licence}}]}},
    }


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    made = tmp_path / "web-1.2.3-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as opened:
        opened.writestr("web-1.2.3.dist-info/METADATA", METADATA)
    return made


def test_a_bill_that_says_what_the_wheel_says_is_right(wheel: Path) -> None:
    check_bill(bill_of(), wheel)


@pytest.mark.parametrize("wrong", [{"name": "wep"}, {"version": "1.2.4"}, {"licence": "MIT"}, {"form": "SPDX"}], ids=str)
def test_a_bill_that_says_something_else_than_the_wheel_is_refused(wheel: Path, wrong: dict[str, str]) -> None:
    (value,) = wrong.values()
    with pytest.raises(ValueError, match=f"the bill of {wheel.name} is about .*'{value}'"):
        check_bill(bill_of(**wrong), wheel)


# --- the definition that was released ----------------------------------------------------------------------------------------------------


def test_the_definition_breaks_no_profile_of_the_newest_release() -> None:
    """Within v1alpha1 no field goes, changes its type, or becomes required."""
    record = parsed((ROOT / "tools" / "release" / "fields.txt").read_text())
    assert len(record) > 100
    assert record["v1alpha1.spec.schedulerName"] == "string"
    assert broken(record, current()) == []


RECORD = {"v1.spec": "object required", "v1.spec.name": "string", "v1.spec.rules[]": "object", "v1.spec.rules[].cpu": "integer required"}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"v1.spec.name": None}, ["v1.spec.name: gone"]),
        ({"v1.spec.name": "integer"}, ["v1.spec.name: integer, was string"]),
        ({"v1.spec.name": "string required"}, ["v1.spec.name: newly required"]),
        ({"v1.spec.rules[].memory": "string required"}, ["v1.spec.rules[].memory: newly required"]),
        ({"v1.spec.rules[].cpu": "integer"}, []),
        ({"v1.spec.limit": "object", "v1.spec.limit.pods": "integer required"}, []),
    ],
)
def test_a_change_of_the_definition_that_breaks_profiles_is_told(change: dict[str, str | None], says: list[str]) -> None:
    now = {path: kind for path, kind in {**RECORD, **change}.items() if kind is not None}
    assert broken(RECORD, now) == says


def test_elements_and_values_are_fields_too() -> None:
    found = current()
    assert found["v1alpha1.spec.pluginConfig[].name"] == "string required"
    assert found["v1alpha1.spec.weights{}"] == "integer"


def test_a_missing_program_is_told_before_anything_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main([str(tmp_path / "release")]) == 1
    assert capsys.readouterr().err == (
        "release: git and kubectl not found; a release needs git for its time, and kubectl for its manifests\n"
    )
    assert not (tmp_path / "release").exists()
