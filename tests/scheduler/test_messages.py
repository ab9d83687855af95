from __future__ import annotations

import numpy as np
import pytest

from placewright.framework.interface import Diagnosis, Rejection
from placewright.framework.status import unschedulable
from placewright.scheduler.messages import (
    fit_error,
    go_duration,
    late_rejection,
    permit_timeout,
)


def diagnosis(*counted: tuple[int, tuple[str, ...]], nodes: int = 0, **said: str) -> Diagnosis:
    """So many rows with these reasons each."""
    rejections = [Rejection(unschedulable(*reasons), np.arange(rows)) for rows, reasons in counted]
    return Diagnosis(nodes or sum(rows for rows, _ in counted), rejections, **said)  # type: ignore[arg-type]


def test_each_reason_is_counted_over_the_nodes_that_gave_it() -> None:
    found = diagnosis((2, ("Insufficient cpu",)), (3, ("node(s) were unschedulable",)))
    assert fit_error(found) == "0/5 nodes are available: 2 Insufficient cpu, 3 node(s) were unschedulable."


def test_a_node_with_several_reasons_counts_for_each() -> None:
    found = diagnosis((2, ("Insufficient cpu", "Insufficient memory")), (1, ("Insufficient memory",)))
    assert fit_error(found) == "0/3 nodes are available: 2 Insufficient cpu, 3 Insufficient memory."


def test_reasons_are_sorted_as_text_not_as_numbers() -> None:
    found = diagnosis((2, ("b",)), (10, ("a",)), (1, ("z",)))
    assert fit_error(found) == "0/13 nodes are available: 1 z, 10 a, 2 b."


def test_what_was_said_before_any_node_stands_for_all_of_them() -> None:
    found = diagnosis((2, ("not shown",)), nodes=4, prefilter_message="pod has unbound immediate PersistentVolumeClaims")
    assert fit_error(found) == "0/4 nodes are available: pod has unbound immediate PersistentVolumeClaims."


def test_what_preemption_says_comes_last_and_as_it_is() -> None:
    found = diagnosis((1, ("Insufficient cpu",)), postfilter_message="preemption: 0/1 nodes are available: 1 No victims.")
    assert fit_error(found) == "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 No victims."


def test_without_any_reason_nothing_is_listed() -> None:
    assert fit_error(diagnosis(nodes=3)) == "0/3 nodes are available:"


def test_long_messages_are_left_whole_for_the_condition() -> None:
    """The recorder cuts the event's note; the condition has room for all of it."""
    found = diagnosis(*((1, (f"reason number {number} of very many",)) for number in range(100)))
    assert len(fit_error(found)) > 2000
    assert fit_error(found).endswith("reason number 99 of very many.")


def test_a_late_rejection_reads_as_that_of_a_cluster_with_one_node() -> None:
    assert late_rejection(unschedulable("no quota left")) == "0/1 nodes are available: 1 no quota left."


def test_the_reasons_of_a_late_rejection_are_counted_one_by_one() -> None:
    assert late_rejection(unschedulable("b", "a", "b")) == "0/1 nodes are available: 1 a, 2 b."
    assert late_rejection(unschedulable()) == "0/1 nodes are available:"


def test_the_timeout_of_permit_is_told_in_kube_schedulers_words() -> None:
    assert permit_timeout("Gang", 90) == "rejected due to timeout after waiting 1m30s at plugin Gang"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (10, "10s"), (60, "1m0s"), (90, "1m30s"), (2.5, "2.5s"), (0.1, "100ms"), (900, "15m0s"), (3661, "1h1m1s")],
)
def test_durations_are_written_as_go_writes_them(seconds: float, text: str) -> None:
    assert go_duration(seconds) == text
