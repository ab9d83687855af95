"""Label columns against plain dictionaries, and what keys that nobody has may cost."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from placewright.cluster.labels import LabelColumns

ROWS = 6
KEYS = st.sampled_from(["zone", "rack", "disk"])
LABELS = st.dictionaries(KEYS, st.sampled_from(["a", "b", ""]))
CHANGES = st.lists(st.one_of(st.tuples(st.integers(0, ROWS - 1), LABELS), KEYS), max_size=30)


@given(CHANGES)
def test_a_column_has_what_the_nodes_have_whenever_it_is_asked_for(changes: list[tuple[int, dict[str, str]] | str]) -> None:
    columns, nodes = LabelColumns(2), [dict[str, str]() for _ in range(ROWS)]
    columns.grow(ROWS)
    for change in changes:
        if isinstance(change, str):
            assert [columns.column(change).get(row) for row in range(ROWS)] == [labels.get(change) for labels in nodes]
        else:
            row, labels = change
            nodes[row] = labels
            columns.set_row(row, labels)
    for key in ("zone", "rack", "disk", "nowhere"):
        assert columns.column(key).where(np.arange(ROWS), lambda value: value == "a").tolist() == [n.get(key) == "a" for n in nodes]


def test_keys_that_no_node_has_or_has_any_more_keep_no_memory() -> None:
    columns = LabelColumns(ROWS)
    columns.set_row(0, {"zone": "a"})
    asked = {id(columns.column(f"key-{number}")) for number in range(1000)}
    assert len(asked) == 1
    assert columns.column("zone").get(0) == "a"
    columns.set_row(0, {})
    assert {id(columns.column("zone"))} == asked
    assert columns.column("zone").get(0) is None
