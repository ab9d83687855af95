"""The contract's words: each extension point says when, how often, by whom and on what it is called, and what each status means."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from framework.makers import Scene
from placewright.api.objects import NodeName
from placewright.cluster.cluster import Cluster
from placewright.framework import interface
from placewright.framework.errors import PluginError
from placewright.framework.interface import (
    Code,
    CycleState,
    Diagnosis,
    FilterPlugin,
    PermitPlugin,
    PermitResult,
    Plugin,
    PodGroupPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreFilterPlugin,
    PreFilterResult,
    PreparingPlugin,
    Rejection,
    Status,
)
from placewright.framework.runtime.guard import Guarding, guard
from placewright.framework.runtime.resolvedprofile import ExtensionPoint
from placewright.testing import pod

HEADINGS = ("When", "How often", "By", "Runs", "Reads", "May change", "Statuses", "Example")
POINTS: list[type[Plugin]] = [*(point.base for point in ExtensionPoint), PodGroupPlugin, PreparingPlugin]
CALLERS = ("live", "shadow", "explain", "evaluate", "simulate")


def sections(kind: type[Plugin]) -> dict[str, str]:
    """By heading, the text below it; in the order of the docstring."""
    document = inspect.cleandoc(kind.__doc__ or "")
    parts = re.split(r"^([A-Z][a-z]+(?: [a-z]+)?):(?= |\n)", document, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def statuses(kind: type[Plugin]) -> set[Code]:
    """The codes that the docstring gives a meaning."""
    heads = re.findall(r"^    ([A-Z_]+(?:, [A-Z_]+)*):", sections(kind)["Statuses"], re.MULTILINE)
    return {Code[name] for head in heads for name in head.split(", ")}


@pytest.mark.parametrize("kind", POINTS, ids=lambda kind: kind.__name__)
def test_an_extension_point_answers_every_question_of_an_author_in_the_same_order(kind: type[Plugin]) -> None:
    found = sections(kind)
    assert tuple(heading for heading in found if heading in HEADINGS) == HEADINGS
    assert all(text.strip() for text in found.values())
    assert "event loop" in found["Runs"]
    assert "never awaits" in found["Runs"] or "may await" in found["Runs"] or "yields" in found["Runs"]


@pytest.mark.parametrize("kind", POINTS, ids=lambda kind: kind.__name__)
def test_an_extension_point_names_its_callers_in_words_that_all_of_them_use(kind: type[Plugin]) -> None:
    callers = sections(kind)["By"]
    assert "live" in callers
    assert any(name in callers for name in CALLERS[1:]) or "No other caller" in callers


@pytest.mark.parametrize("kind", POINTS, ids=lambda kind: kind.__name__)
def test_every_method_of_an_extension_point_says_what_it_takes_and_what_it_answers(kind: type[Plugin]) -> None:
    for name, method in inspect.getmembers(kind, inspect.isfunction):
        if name.startswith("_") or name not in kind.__dict__:
            continue
        document, signature = inspect.getdoc(method) or "", inspect.signature(method)
        asked = [each for each in signature.parameters if each != "self"]
        assert all(re.search(rf"^    {each}: ", document, re.MULTILINE) for each in asked), f"{kind.__name__}.{name}"
        assert "Returns:" in document or signature.return_annotation in ("None", "Iterator[None]"), f"{kind.__name__}.{name}"


# --- the statuses that a docstring names are those that the framework takes -----------------------


ROW = Cluster().all_rows
ASKED = {
    "pre_enqueue": (pod("p").build(),),
    "pre_filter": (CycleState(), pod("p").build(), Cluster()),
    "explain": (CycleState(), pod("p").build(), Cluster(), ROW),
    "failure": (CycleState(), pod("p").build(), Cluster(), ROW),
    "post_filter": (CycleState(), pod("p").build(), Cluster(), Diagnosis(0)),
    "pre_score": (CycleState(), pod("p").build(), Cluster(), ROW),
    "reserve": (CycleState(), pod("p").build(), NodeName("a")),
    "permit": (CycleState(), pod("p").build(), NodeName("a")),
    "pre_bind": (CycleState(), pod("p").build(), NodeName("a")),
    "bind": (CycleState(), pod("p").build(), NodeName("a"), {}),
}
RESULTS = {PreFilterPlugin: PreFilterResult, PostFilterPlugin: PostFilterResult, PermitPlugin: PermitResult}
#: An ERROR of PreEnqueue is told as the plugin's failure, because it gates the pod in no plugin's name.
TOLD_AS_FAILURE = {("pre_enqueue", Code.ERROR)}


async def taken(kind: type[Plugin], method: str, code: Code) -> bool:
    """Whether the framework takes this status from somebody's plugin at this point."""
    answer = RESULTS.get(kind, lambda status: status)(Status(code, ("because",)))
    if method == "explain":
        answer = [Rejection(Status(code, ("because",)), ROW)]

    def said(_self: Plugin, *_asked: object) -> object:
        return answer

    async def said_later(_self: Plugin, *_asked: object) -> object:
        return answer

    awaited = inspect.iscoroutinefunction(getattr(kind, method))
    rest = dict.fromkeys(getattr(kind, "__abstractmethods__", ()), said)
    written = {**rest, method: said_later if awaited else said, "name": "Theirs", "__module__": "somebodys.plugins"}
    scene = Scene()
    plugin = type("Theirs", (kind,), written)(None, scene.handle())
    profile = scene.evaluator().runtime.profile
    guard(plugin, profile, Guarding(), scene.cluster)
    try:
        found = getattr(plugin, method)(*ASKED[method])
        if awaited:
            await found
    except PluginError:
        return (method, code) in TOLD_AS_FAILURE
    return True


@pytest.mark.parametrize("kind", [point.base for point in ExtensionPoint], ids=lambda kind: kind.__name__)
async def test_the_statuses_that_a_point_names_are_those_that_the_framework_takes_from_it(kind: type[Plugin]) -> None:
    methods = [name for name in ASKED if name in kind.__dict__]
    found = {code for code in Code for method in methods if await taken(kind, method, code)}
    assert statuses(kind) == found


def test_filters_reject_through_explain_and_end_an_attempt_through_failure_alone() -> None:
    assert statuses(FilterPlugin) == set(Code) - {Code.WAIT, Code.SKIP}


# --- the package as a whole -----------------------------------------------------------------------


def test_the_package_lists_each_of_its_modules() -> None:
    folder = Path(interface.__file__).parent
    listed = re.findall(r"^    ([a-z]+) {2,}\S", interface.__doc__ or "", re.MULTILINE)
    assert {name for name in listed if (folder / f"{name}.py").exists()} == {file.stem for file in folder.glob("*.py")} - {"__init__"}


def test_half_of_the_contract_is_prose() -> None:
    prose = total = 0
    for file in Path(interface.__file__).parent.glob("*.py"):
        text = file.read_text()
        lines = [line for line in text.splitlines() if line.strip()]
        within = sum(len(doc.splitlines()) for doc in re.findall(r'"""(.*?)"""', text, re.DOTALL))
        prose += within + sum(line.strip().startswith("#") for line in lines)
        total += len(text.splitlines())
    assert prose * 2 > total
