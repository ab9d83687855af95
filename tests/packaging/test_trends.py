"""`make trends` counts what a reader has to read, and says what grew."""

from __future__ import annotations

import runpy
from pathlib import Path

TRENDS = runpy.run_path(str(Path(__file__).parents[2] / ".ci" / "trends.py"))
MODULE = '''"""A module of four words."""

# why it is so
LIMIT = (
    1
)


class Queue:
    """Hold pods."""

    def __init__(self):
        self.pods, self.gates = [], {}

    def pop(self):
        """Take one pod, and do so in a sentence with more words than any sentence may have that a reader understands at once."""
        return self.pods.pop()  # the last
'''


def checkout(root: Path, text: str) -> Path:
    module = root / "operator" / "package" / "room" / "module.py"
    module.parent.mkdir(parents=True)
    module.write_text(text)
    return root


def test_docstrings_comments_and_blanks_are_no_code(tmp_path: Path) -> None:
    found = TRENDS["measured"](checkout(tmp_path, MODULE))
    assert found == {
        "operator/package/room": {
            "modules": 1, "code": 8, "comments": 2, "classes": 1, "methods": 2, "most": 2, "attributes": 2,
            "docstrings": 3, "words": 30, "long": 1,
        }
    }  # fmt: skip


def test_a_table_of_two_checkouts_has_the_rooms_that_differ_and_by_how_much(tmp_path: Path) -> None:
    now, before = (checkout(tmp_path / name, text) for name, text in (("now", MODULE), ("before", "LIMIT = 1\n")))
    head, room, total = TRENDS["table"](TRENDS["measured"](now), TRENDS["measured"](before))
    assert dict(zip(head.split()[1:3], room.split(maxsplit=5)[1:5:2], strict=True)) == {"modules": "1", "code": "8"}
    assert "8 (+7)" in room
    assert "8 (+7)" in total
    assert len(list(TRENDS["table"](TRENDS["measured"](now), TRENDS["measured"](now)))) == 1


def test_a_plain_pod_touches_the_scheduling_cycle_and_not_every_module() -> None:
    root = Path(__file__).parents[2]
    assert 12 < TRENDS["plain_pod"](root) < len(list((root / "operator" / "placewright").rglob("*.py"))) / 3
