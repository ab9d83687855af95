"""What the documents name exists, and what they show works."""

from __future__ import annotations

import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from kubectl.page import files_of
from placewright.cli.main import commands
from placewright.plugins.catalog import in_tree
from placewright.profiles.config import read_profiles
from placewright.profiles.resolve import resolve
from placewright.profiles.schema import json_schema

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()
FOLDERS = {"placewright": "operator", "placewright_console": "console", "placewright_lab": "lab"}
PACKAGES = {name: ROOT / folder / name for name, folder in FOLDERS.items()}
PACKAGE = PACKAGES["placewright"]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


#: A README of one screen and a half; the rest has pages.
MOST_WORDS_OF_README = 900
#: A page that is read from its top to its end takes five minutes; longer is only what readers look up.
MOST_WORDS_OF_PAGE = 1200


@pytest.mark.parametrize("page", ["README.md", "docs/coming-from.md"])
def test_a_profile_that_a_page_shows_whole_can_run(page: str) -> None:
    blocks = re.findall(r"```yaml[^\n]*\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    profiles = [block for block in blocks if "SchedulingProfile" in block]
    assert profiles
    for text in profiles:
        jsonschema.validate(yaml.safe_load(text), json_schema())
        resolve(read_profiles(text, page)[0], in_tree())


def test_kind_is_asked_for_a_cluster_with_workers() -> None:
    configuration = yaml.safe_load(files_of(ROOT / "docs" / "operating.md")["kind.yaml"])
    assert (configuration["kind"], configuration["apiVersion"]) == ("Cluster", "kind.x-k8s.io/v1alpha4")
    assert [node["role"] for node in configuration["nodes"]] == ["control-plane", "worker", "worker"]


def test_the_readme_is_read_in_one_go() -> None:
    assert len(README.split()) <= MOST_WORDS_OF_README


def test_only_references_have_more_words_than_are_read_in_one_go() -> None:
    pages = {name: each for group in yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"] for name, each in group.items()}
    read = [file for file in (ROOT / "docs").glob("*.md") if file.name not in pages["Reference"]]
    assert {file.name for file in read if len(file.read_text().split()) > MOST_WORDS_OF_PAGE} == set()


def test_the_page_of_commands_has_each_command_and_no_document_names_another() -> None:
    table = set(re.findall(r"^\| `placewright (\w+)`", (ROOT / "docs" / "commands.md").read_text(), re.MULTILINE))
    assert table | {"record"} == set(commands())  # beside `snapshot`
    for file in DOCUMENTS:
        assert set(re.findall(r"`placewright ([a-z]+)", file.read_text())) <= set(commands()), file.name


def test_every_page_is_in_the_index() -> None:
    linked = set(re.findall(r"\]\(([^)#]+\.md)\)", (ROOT / "docs" / "index.md").read_text()))
    assert {file.name for file in (ROOT / "docs").glob("*.md")} - linked == {"index.md"}


def test_every_make_target_that_a_document_names_exists() -> None:
    targets = set(re.findall(r"^([a-z0-9]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {target for file in DOCUMENTS for target in re.findall(r"(?:^    |`)make ([a-z0-9]+)", file.read_text(), re.MULTILINE)}
    assert {"demo", "test"} <= named <= targets


@pytest.mark.parametrize("file", sorted((ROOT / "docs").glob("*.md")), ids=lambda file: file.stem)
def test_a_page_begins_with_its_readers_and_ends_with_what_is_next(file: Path) -> None:
    paragraphs = [each for each in file.read_text().split("\n\n") if each.strip()]
    assert paragraphs[1].startswith("For ")
    assert paragraphs[-1].startswith("Next: ") or file.stem == "index"


@pytest.mark.parametrize("file", DOCUMENTS, ids=lambda file: file.stem)
def test_links_lead_somewhere(file: Path) -> None:
    for link, heading in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)", file.read_text()):
        page = file.parent / link if link else file
        assert link.startswith("https://") or page.exists(), link
        if heading and page.suffix == ".md":
            assert heading in anchors(page), f"{link}#{heading}"


def anchors(page: Path) -> set[str]:
    """The names of a page's headings in links, as GitHub and MkDocs make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    headings = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", each) for each in re.findall(r"^#+ (.+)$", text, re.MULTILINE))
    return {re.sub(r"[^\w\- ]", "", each.lower()).strip().replace(" ", "-") for each in headings}


def test_the_files_that_the_architecture_names_are_there() -> None:
    named = re.findall(r"`((?:[a-z]+/)+[a-z_]+\.py)`", ARCHITECTURE)
    assert len(named) >= 5
    for name in named:
        assert (PACKAGE / name).is_file(), name


@pytest.mark.parametrize("package", PACKAGES)
def test_the_architecture_s_table_names_every_room(package: str) -> None:
    rooms = {folder.name for folder in PACKAGES[package].iterdir() if (folder / "__init__.py").is_file()}
    section = ARCHITECTURE.partition(f"\n### {package}:")[2].partition("\n##")[0]
    assert set(re.findall(r"^\| `([a-z]+)` \|", section, re.MULTILINE)) == rooms


def test_the_durations_of_the_checks_stand_in_one_place() -> None:
    page = ROOT / "docs" / "tests.md"
    region = re.search(r"<!-- durations -->\n(.*?)<!-- end of durations -->", page.read_text(), re.DOTALL)
    assert region
    assert set(re.findall(r"^\| `make ([a-z0-9-]+)` \| \d+ (?:s|min) \|$", region[1], re.MULTILINE)) >= {
        "lint",
        "types",
        "unit",
        "test",
        "test-all",
    }
    elsewhere = re.compile(r"make (?:lint|types|unit|test|test-all|check)\b.*\b\d+ (?:s|min|minutes)\b")
    for file in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        text = file.read_text().replace(region[0], "")
        assert [line for line in text.splitlines() if elsewhere.search(line)] == [], file.name


def test_each_hook_of_contributors_runs_what_make_runs() -> None:
    makefile = (ROOT / "Makefile").read_text()
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    for hook in repository["hooks"]:
        program, *words = hook["entry"].split()
        pattern = r"(?: --\w+)* ".join(re.escape(word) for word in (program.replace(".venv/bin", "$(BIN)"), *words))
        assert re.search(pattern, makefile), hook["id"]


@pytest.mark.parametrize("file", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yaml")), ids=lambda file: file.stem)
def test_a_template_of_an_issue_names_its_fields(file: Path) -> None:
    template = yaml.safe_load(file.read_text())
    assert {"name", "description", "body"} == set(template)
    ids = [field["id"] for field in template["body"]]
    assert len(ids) == len(set(ids)) > 0
    assert all(field["attributes"]["label"] for field in template["body"])
