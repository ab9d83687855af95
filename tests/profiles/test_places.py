"""From the path of a field to its place in the text."""

from __future__ import annotations

import pytest

from placewright.api.yamldocs import place_of
from placewright.profiles.documents import parse_placed

TEXT = """\
spec:
  a: {b: 1}
  a.b:
  - c
  - d: [2]
  a[0]: 3
"""


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("", (1, 1)),
        ("spec", (1, 1)),
        ("spec.a", (2, 3)),
        ("spec.a.c", (2, 3)),
        ("spec.a.b", (3, 3)),
        ("spec.a.b[1]", (5, 5)),
        ("spec.a.b[1].d[0]", (5, 9)),
        ("spec.a.b[7].d", (3, 3)),
        ("spec.a[0]", (6, 3)),
        ("spec.b.b", (1, 1)),
        ("nothing", (1, 1)),
    ],
)
def test_a_path_leads_to_the_fields_name_or_to_what_should_hold_it(path: str, place: tuple[int, int]) -> None:
    (document,) = parse_placed(TEXT)
    assert place_of(path, document.node) == place


def test_a_document_begins_where_it_begins_in_the_file() -> None:
    _, second = parse_placed("a: 1\n---\n\nb: {c: 2}\n")
    assert place_of("b.c", second.node) == (4, 5)
