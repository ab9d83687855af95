"""Who decided: compared with the choice made again without a plugin, node by node."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from placewright.framework.runtime.scoreimpact import ScoreImpact


def scores_of(nodes: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, 4), min_size=nodes, max_size=nodes)


@given(st.integers(1, 6).flatmap(lambda nodes: st.lists(scores_of(nodes), min_size=1, max_size=4)))
def test_a_plugin_decided_when_without_it_other_nodes_would_have_been_best(rows: list[list[int]]) -> None:
    plugins = {f"P{number}": row for number, row in enumerate(rows)}
    nodes = range(len(rows[0]))

    def best_without(left_out: str) -> set[int]:
        totals = [sum(row[node] for name, row in plugins.items() if name != left_out) for node in nodes]
        return {node for node in nodes if totals[node] == max(totals)}

    impact = ScoreImpact(plugins)
    columns = {name: np.array(row) for name, row in plugins.items()}
    impact.note(np.array(rows).sum(axis=0), columns)
    for name, row in plugins.items():
        assert (impact.undecisive(name) == 0) == (best_without(name) != best_without("nobody"))
        assert (impact.idle(name) == 0) == (len(set(row)) > 1)


def test_a_tie_that_a_plugin_breaks_is_decided_by_it() -> None:
    impact = ScoreImpact(["A", "B"])
    impact.note(np.array([5, 6]), {"A": np.array([5, 5]), "B": np.array([0, 1])})
    assert (impact.undecisive("A"), impact.undecisive("B")) == (1, 0)


def test_one_decision_in_so_many_is_looked_at() -> None:
    impact = ScoreImpact([], every=3)
    assert [impact.due() for _ in range(7)] == [False, False, True, False, False, True, False]


def test_plugins_that_were_skipped_count_as_idle() -> None:
    impact = ScoreImpact(["A"])
    impact.note(np.array([1, 2]), {})
    assert (impact.idle("A"), impact.undecisive("A"), impact.samples) == (1, 1, 1)
