"""Pages of the documentation become pages of a site, whose links lead somewhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from placewright import __version__
from tools.generated.site import ROOT, page, write, write_versions


@pytest.mark.parametrize(
    ("link", "depth", "unset", "published"),
    [
        ("[base](../manifests/base)", 1, "base (`manifests/base`)", "[base](https://git.example/p/manifests/base)"),
        ("[changes](../CHANGELOG.md)", 1, "[changes](CHANGELOG.md)", "[changes](CHANGELOG.md)"),
        ("[changes](../../CHANGELOG.md)", 2, "[changes](../CHANGELOG.md)", "[changes](../CHANGELOG.md)"),
        ("[policy](policy.md#turns)", 1, "[policy](policy.md#turns)", "[policy](policy.md#turns)"),
        ("[overload](../overload.md#memory)", 2, "[overload](../overload.md#memory)", "[overload](../overload.md#memory)"),
    ],
)
def test_a_link_leads_to_a_page_or_to_the_repository(link: str, depth: int, unset: str, published: str) -> None:
    assert page(f"See {link}.", depth, "") == f"See {unset}."
    assert page(f"See {link}.", depth, "https://git.example/p") == f"See {published}."


def test_the_site_has_all_pages_and_the_menu_each_of_them_but_single_decisions(tmp_path: Path) -> None:
    write(tmp_path / "docs", "")
    pages = {file.relative_to(tmp_path / "docs").as_posix() for file in (tmp_path / "docs").rglob("*.md")}
    menu = set[str]()
    for group in yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]:
        for entry in group.values():
            menu |= {entry} if isinstance(entry, str) else set(entry)
    assert menu <= pages
    assert {each for each in pages - menu if not each.startswith(("decisions/0", "upstream/"))} == set()


def test_a_word_that_only_tests_read_goes_and_a_title_stays() -> None:
    assert page('```sh refused\nfalse\n```\n\n```yaml title="a.yaml"\n', 1, "") == '```sh\nfalse\n```\n\n```yaml title="a.yaml"\n'


@pytest.mark.parametrize(("depth", "source"), [(1, "mermaid.min.js"), (2, "../mermaid.min.js")])
def test_a_page_with_a_diagram_loads_what_draws_it_from_the_site(depth: int, source: str) -> None:
    diagram = "# Page\n\n```mermaid\nflowchart LR\n```\n"
    assert page(diagram, depth, "") == f'{diagram}\n<script src="{source}"></script>\n'


def test_the_site_of_this_version_stands_beside_those_of_older_ones_and_the_newest_opens(tmp_path: Path) -> None:
    for name in ("0.9.0", "0.2.1"):
        (tmp_path / name).mkdir()
    write_versions(tmp_path, "0.10.0")
    listed = json.loads((tmp_path / "versions.json").read_text())
    assert [(each["version"], each["aliases"]) for each in listed] == [("0.10.0", ["latest"]), ("0.9.0", []), ("0.2.1", [])]
    assert "url=0.10.0/" in (tmp_path / "index.html").read_text()


def test_the_site_is_built_where_the_menu_of_versions_looks_for_it() -> None:
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    assert (settings["site_dir"], settings["extra"]["version"]["provider"]) == (f"build/site/{__version__}", "mike")
