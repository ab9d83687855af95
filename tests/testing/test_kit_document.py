"""docs/testing.md: its examples pass as they stand there, and its tables name what the kit has."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

import placewright.testing as kit
from placewright.testing import World, assert_placed, node, pod
from placewright.testing.objectmaker import ObjectMaker

DOCUMENT = Path(__file__).parents[2] / "docs" / "testing.md"
TEXT = DOCUMENT.read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return [token.content for token in MarkdownIt().parse(TEXT) if token.type == "fence" and token.info == language]


def examples() -> list[Any]:
    found = []
    for block in blocks("python"):
        names: dict[str, Any] = {}
        exec(compile(block, str(DOCUMENT), "exec", dont_inherit=True), names)
        found += [each for name, each in names.items() if name.startswith("test_")]
    return found


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.__name__)
def test_an_example_passes(example: Callable[[], None]) -> None:
    example()


def test_every_block_of_python_is_an_example() -> None:
    assert len(examples()) == len(blocks("python")) >= 5


def test_every_name_of_the_kit_stands_on_the_page() -> None:
    named = set(re.findall(r"`(\w+)", TEXT)) | {name for block in blocks("python") for name in re.findall(r"\w+", block)}
    assert set(kit.__all__) - named == set()


def steps_of(maker: type[Any]) -> set[str]:
    return {name for each in maker.__mro__ for name in vars(each) if not name.startswith("_")} - {"build", "decoded", "kind", "name"}


def test_every_step_of_every_maker_stands_on_the_page() -> None:
    named = set(re.findall(r"`(\w+)", TEXT))
    makers = [kind for kind in all_subclasses(ObjectMaker) if kind.__module__.startswith("placewright.testing")]
    assert len(makers) > 15
    aside = {"api_version", "namespaced", "manifest", "capacity", "wait_for_first_consumer"}  # no steps, or what the maker begins with
    missing = {maker.__name__: steps_of(maker) - named - aside for maker in makers}
    assert {name: steps for name, steps in missing.items() if steps} == {}


def all_subclasses(kind: type[Any]) -> set[type[Any]]:
    return {each for sub in kind.__subclasses__() for each in (sub, *all_subclasses(sub))}


def test_the_message_that_the_page_shows_is_the_one_that_is_raised() -> None:
    (shown,) = blocks("text")
    world = World(nodes=[node("a", cpu="1"), node("b").taint("gpu")]).add(pod("web").requests(cpu="2"))
    with pytest.raises(AssertionError) as caught:
        assert_placed(world, "web", on="a")
    assert str(caught.value) == shown.rstrip("\n")
