"""The samples of policy: each is valid, can run, is accepted by the API server, is on the page, and is shown working by a story."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from handlers.stage import new_stage
from placewright.api.profile import GROUP, KIND, PLURAL, VERSION
from placewright.cli.main import main
from placewright.plugins.catalog import in_tree
from placewright.profiles.config import read_profiles
from placewright.profiles.resolve import resolve

ROOT = Path(__file__).parents[2]
SAMPLES = sorted((ROOT / "manifests" / "samples" / "policy").glob("*.yaml"))
PAGE = (ROOT / "docs" / "policy.md").read_text()
STORIES = {file.name: file.read_text() for file in sorted((ROOT / "tests" / "policy").glob("test_*_story.py"))}


def test_every_sample_is_valid_and_can_run(capsys: pytest.CaptureFixture[str]) -> None:
    for file in SAMPLES:
        assert main(["validate", str(file)]) == 0, capsys.readouterr().out
        profiles = read_profiles(file.read_text(), file.name)
        assert profiles, file.name
        for profile in profiles:
            resolve(profile, in_tree())


async def test_the_api_server_accepts_every_sample_beside_the_others() -> None:
    async with new_stage() as stage:
        kind = stage.sandbox.resource(GROUP, VERSION, PLURAL)
        for file in SAMPLES:
            for document in yaml.safe_load_all(file.read_text()):
                if document["kind"] == KIND:
                    stage.sandbox.writes.create(kind, "", document)


def test_every_sample_names_its_schema_and_says_first_what_it_is_for() -> None:
    for file in SAMPLES:
        schema, purpose, *_ = file.read_text().splitlines()
        assert schema == "# yaml-language-server: $schema=../../../crds/schedulingprofile.schema.json", file.name
        assert purpose.startswith("# "), file.name


def test_the_page_links_every_sample() -> None:
    assert [file.name for file in SAMPLES if f"](../manifests/samples/policy/{file.name})" not in PAGE] == []


def test_every_sample_has_a_story_that_shows_it_working() -> None:
    assert [file.name for file in SAMPLES if not any(f'"{file.name}"' in text for text in STORIES.values())] == []


def test_every_story_shows_a_sample() -> None:
    assert [name for name, text in STORIES.items() if not any(f'"{file.name}"' in text for file in SAMPLES)] == []
