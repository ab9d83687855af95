"""docs/messages.md has every message of the code, with cause and remedy, and no message names a class of ours."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from placewright.plugins.catalog import in_tree
from tools.generated.messages import EXPLANATIONS, Row, messages_by_key, page, read_explanations
from tools.generated.messagetexts import ERRORS, PACKAGES, PASSED_ON, ROOT, Message, Sources

EXPLAINED: Final = EXPLANATIONS.read_text()
#: Classes of ours whose names are Kubernetes' own or the product's: kinds, and what a person writes in a file.
PUBLIC: Final = {"KubeSchedulerConfiguration", "LeaderElection", "PodGroup", "SchedulingProfile", *in_tree()}


@pytest.fixture(scope="module")
def sources() -> Sources:
    return Sources()


@pytest.fixture(scope="module")
def messages(sources: Sources) -> tuple[Message, ...]:
    return tuple(sources.messages())


def test_the_page_is_made_of_the_code_and_the_explanations(messages: tuple[Message, ...]) -> None:
    assert (ROOT / "docs/messages.md").read_text() == page(EXPLAINED, messages), "run `make generate`"


def test_no_message_names_a_class_of_ours_a_module_or_an_attribute(sources: Sources, messages: tuple[Message, ...]) -> None:
    internal = {name for name in sources.classes if re.fullmatch(r"_?[A-Z][a-z]+[A-Z]\w+", name)} - PUBLIC
    assert len(internal) > 1000
    for message in messages:
        assert not internal & set(re.findall(r"\w+", message.text)), message
        assert not re.search(r"\b(placewright|placewright_\w+|kubesandbox)\.[a-z_]+\b(?!/)", message.text), message
        assert set(re.findall(r"[a-z]+_[a-z_]+", message.text)) <= {"scheduled_time"}, message  # a column of a trace


def test_each_class_of_error_is_shown_or_not_and_each_name_is_there(sources: Sources) -> None:
    assert sources.unsorted_errors() == set()
    ours = {name for names in ERRORS.values() for name in names} - {"ArgumentTypeError"}
    assert ours <= set(sources.classes)
    code = [file.read_text() for package, folder in PACKAGES.items() for file in (ROOT / folder / package).rglob("*.py")]
    for name in PASSED_ON:
        home, _, function = name.rpartition(".")
        assert any(f"def {function}(" in text and f"class {home}" in text for text in code), name


def test_the_lines_of_an_absence_of_the_api_server_stand_in_its_section(messages: tuple[Message, ...]) -> None:
    _, sections = read_explanations(EXPLAINED)
    (away,) = [section for section in sections if section.title == "While the API server is away"]
    keys = {key for row in away.rows for key in row.keys}
    said = [each for each in messages if each.file.endswith(("kube/errors.py", "leadership/lease.py"))]
    assert {each.text for each in said} <= keys
    assert len(said) == 5


# --- what fails --------------------------------------------------------------------------------------------------------------


A_ROW = Row(frozenset({"log"}), ("node … is lost", "node …"), "a cause", "a remedy")


def logged(text: str) -> Message:
    return Message("log", text, "warning", "a.py", 7)


def test_a_message_goes_to_its_own_key_or_to_a_family() -> None:
    lost, full, away = logged("node … is lost"), logged("node …: it is full"), logged("node … is away")
    assert messages_by_key([A_ROW], [lost, full, away]) == {(A_ROW, "node … is lost"): [lost], (A_ROW, "node …"): [full, away]}


def test_a_message_without_a_key_and_a_key_without_a_message_fail() -> None:
    lost, full = logged("node … is lost"), logged("node …: it is full")
    with pytest.raises(ValueError, match=r"^a\.py:7: no key of tools/generated/messages\.yaml fits log: pod … is lost$"):
        messages_by_key([A_ROW], [lost, full, logged("pod … is lost")])
    with pytest.raises(ValueError, match=r"^tools/generated/messages\.yaml: no message of the code fits node …$"):
        messages_by_key([A_ROW], [lost])
    with pytest.raises(ValueError, match="fits note: node … is lost"):
        messages_by_key([A_ROW], [lost, full, Message("note", "node … is lost", "", "a.py", 7)])


def test_a_new_message_does_not_pass_for_an_old_one() -> None:
    row = A_ROW._replace(keys=("node …: …",))
    with pytest.raises(ValueError, match="fits log: node …: it is full"):
        messages_by_key([row], [logged("node …: …"), logged("node …: it is full")])


# --- what is found -----------------------------------------------------------------------------------------------------------


CODE: Final = '''
"""A module."""
from __future__ import annotations
LIMIT: Final = 20
WORDS: Final = "in words"

class OwnError(InputError):
    """Of ours."""

def work(self, path, pod):
    _log.warning("pod %s waits for %d s", pod, 3)
    _log.info("nothing")
    _logger.exception("pod %s broke", pod)
    raise OwnError(f"{path}: larger than {LIMIT} {WORDS}")
    raise InputError(why(path))
    raise InputError(str(path))
    raise bad_field("--speed", path, f"a number up to {LIMIT}")
    raise Problem("spec.mode", "nothing", "a mode")
    raise RequestRefused(404, "no such page")
    sys.stderr.write(f"placewright: {printable(note(path))}\\n")
    _told("a listener broke", pod)
    self.events.record(pod, EventType.WARNING, "Lost", "Scheduling", f"{pod} is lost")
    yield Condition("Ready", "True", "Active" if path else "Paused", "message")

def why(path):
    return "cannot be opened" if path else f"{path} is locked"

def note(path):
    return f"{path} is left out"

def _told(problem, about):
    _log.error(problem + " at %s", about)
'''


def test_messages_are_found_with_gaps_for_values(tmp_path: Path) -> None:
    package = tmp_path / "src" / "few"
    package.mkdir(parents=True)
    (package / "words.py").write_text(CODE)
    found = [(each.kind, each.text, each.where) for each in Sources({"few": "src"}, tmp_path).messages()]
    assert sorted(found) == [
        ("condition", "Active", "Ready"),
        ("condition", "Paused", "Ready"),
        ("event", "Lost", ""),
        ("input", "--speed: found …; allowed a number up to 20", ""),
        ("input", "cannot be opened", ""),
        ("input", "spec.mode: found nothing; allowed a mode", ""),
        ("input", "… is locked", ""),
        ("input", "…: larger than 20 in words", ""),
        ("log", "a listener broke at …", "error"),
        ("log", "pod … broke", "error"),
        ("log", "pod … waits for … s", "warning"),
        ("note", "… is left out", ""),
        ("page", "no such page", "404"),
        ("pod", "… is lost", "event"),
    ]
