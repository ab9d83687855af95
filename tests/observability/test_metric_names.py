"""Names, types, labels and buckets are kube-scheduler's own: the table below is v1.36's, written down by hand and not made by our code."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from placewright.observability.metrics import MetricFamily, MetricKind, families

#: name | type | labels | first bucket, factor, count.
UPSTREAM = """
scheduler_schedule_attempts_total                      | counter   | result profile
scheduler_scheduling_attempt_duration_seconds          | histogram | result profile                 | 0.001 2 15
scheduler_scheduling_algorithm_duration_seconds        | histogram |                                | 0.001 2 15
scheduler_event_handling_duration_seconds              | histogram | event                          | 0.0001 2 12
scheduler_preemption_victims                           | histogram |                                | 1 2 7
scheduler_preemption_attempts_total                    | counter   |
scheduler_pending_pods                                 | gauge     | queue
scheduler_inflight_events                              | gauge     | event
scheduler_goroutines                                   | gauge     | operation
scheduler_pod_scheduling_sli_duration_seconds          | histogram | attempts                       | 0.01 2 20
scheduler_pod_scheduling_attempts                      | histogram |                                | 1 2 5
scheduler_pod_scheduled_after_flush_total              | counter   |
scheduler_framework_extension_point_duration_seconds   | histogram | extension_point status profile | 0.0001 2 12
scheduler_plugin_execution_duration_seconds            | histogram | plugin extension_point status  | 0.00001 1.5 20
scheduler_queueing_hint_execution_duration_seconds     | histogram | plugin event hint              | 0.00001 1.5 20
scheduler_queue_incoming_pods_total                    | counter   | queue event
scheduler_permit_wait_duration_seconds                 | histogram | result                         | 0.001 2 15
scheduler_cache_size                                   | gauge     | type
scheduler_unschedulable_pods                           | gauge     | plugin profile
scheduler_plugin_evaluation_total                      | counter   | plugin extension_point profile
scheduler_podgroup_schedule_attempts_total             | counter   | result profile
scheduler_podgroup_scheduling_attempt_duration_seconds | histogram | result profile                 | 0.001 2 15
scheduler_podgroup_scheduling_algorithm_duration_seconds | histogram |                              | 0.001 2 15
scheduler_resourceclaim_creates_total                  | counter   | status
scheduler_dra_bindingconditions_allocations_total      | counter   | profile driver status
scheduler_dra_bindingconditions_wait_duration_seconds  | histogram | profile driver status          | 0.1 2 14
rest_client_requests_total                             | counter   | code method host
rest_client_request_duration_seconds                   | histogram | verb host | 0.005 0.025 0.1 0.25 0.5 1 2 4 8 15 30 60
rest_client_rate_limiter_duration_seconds              | histogram | verb host | 0.005 0.025 0.1 0.25 0.5 1 2 4 8 15 30 60
leader_election_master_status                          | gauge     | name
"""


def upstream() -> Iterator[MetricFamily]:
    for line in UPSTREAM.strip().splitlines():
        name, kind, labels, buckets, *_ = [*(cell.strip() for cell in line.split("|")), ""]
        numbers = [float(number) for number in buckets.split()]
        if len(numbers) == 3:
            numbers = [numbers[0] * numbers[1] ** power for power in range(int(numbers[2]))]
        yield MetricFamily(name, MetricKind(kind), "", tuple(labels.split()), tuple(numbers))


DECLARED = {family.name: family for family in families()}


@pytest.mark.parametrize("wanted", list(upstream()), ids=lambda family: family.name)
def test_a_metric_of_kube_scheduler_is_what_it_is_there(wanted: MetricFamily) -> None:
    found = DECLARED[wanted.name]
    assert (found.kind, sorted(found.labels)) == (wanted.kind, sorted(wanted.labels))
    assert found.buckets == pytest.approx(wanted.buckets, rel=1e-12)


def test_nothing_else_is_given_a_name_of_kube_scheduler() -> None:
    others = DECLARED.keys() - {family.name for family in upstream()}
    assert {name for name in others if not name.startswith("placewright_")} == set()


def test_names_and_labels_follow_prometheus_rules() -> None:
    for family in DECLARED.values():
        assert re.fullmatch(r"[a-z][a-z0-9_]*", family.name)
        assert all(re.fullmatch(r"[a-z][a-z0-9_]*", label) and label != "le" for label in family.labels)
        assert family.name.endswith("_total") == (family.kind is MetricKind.COUNTER), family.name
        assert family.name.endswith("_info") == (family.kind is MetricKind.INFO), family.name
        assert bool(family.buckets) == (family.kind is MetricKind.HISTOGRAM), family.name
        assert family.help.endswith("."), family.name


def test_no_name_is_declared_twice() -> None:
    names = [family.name for family in families()]
    assert len(names) == len(set(names))
