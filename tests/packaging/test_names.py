"""One vocabulary: a class name is one thing's, a module is named for what it holds, and the glossary knows the words."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "placewright": "operator",
    "placewright_console": "console",
    "placewright_lab": "lab",
    "kubesandbox": "lab",
    "benchmarks": ".",
    "tools": ".",
}
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()

#: Public class names that two modules of a package may have, and why.
SHARED_NAMES = {
    ("placewright", "NodeAffinity"): "Kubernetes calls the field of a pod so, and kube-scheduler the plugin that reads it",
}
#: Modules whose name ends as a verb's form does, and is a noun.
NOUNS = {
    "binding": "Kubernetes' own noun: the kind that binds a pod to a node",
    "encoding": "a dictionary encoding",
    "gangscheduling": "the name of the plugin",
    "peering": "Kopf's noun for replicas that know each other",
    "tracing": "what OpenTelemetry calls it",
}


@cache
def modules(package: str) -> dict[str, Path]:
    root = ROOT / PACKAGES[package]
    return {".".join(file.relative_to(root).with_suffix("").parts): file for file in sorted((root / package).rglob("*.py"))}


def classes(file: Path) -> list[str]:
    return [node.name for node in ast.parse(file.read_text()).body if isinstance(node, ast.ClassDef)]


@pytest.mark.parametrize("package", PACKAGES)
def test_no_public_class_name_is_two_things_in_a_package(package: str) -> None:
    where = defaultdict(list)
    for name, file in modules(package).items():
        for each in classes(file):
            if not each.startswith("_"):
                where[each].append(name)
    twice = {name: found for name, found in where.items() if len(found) > 1}
    allowed = {name for of, name in SHARED_NAMES if of == package}
    assert {name: found for name, found in twice.items() if name not in allowed} == {}
    assert allowed <= set(twice), "an exception that is none any more"


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_is_named_for_an_activity(package: str) -> None:
    gerunds = {name for name in modules(package) if name.rpartition(".")[2].endswith("ing")}
    assert {name for name in gerunds if name.rpartition(".")[2] not in NOUNS} == set()


def test_the_nouns_that_look_like_activities_are_still_there() -> None:
    last = {name.rpartition(".")[2] for package in PACKAGES for name in modules(package)}
    assert set(NOUNS) <= last


def test_every_word_of_the_glossary_that_names_a_class_names_one_that_there_is() -> None:
    there = {each for package in PACKAGES for file in modules(package).values() for each in classes(file)}
    rows = re.findall(r"^\|(.*?\|.*?)\|", GLOSSARY, re.MULTILINE)  # upstream's names are in the third column
    named = {name for row in rows for name in re.findall(r"`([A-Z][A-Za-z]+)`", row)}
    assert len(named) >= 40
    assert named <= there, named - there
