"""Metrics that are read from the engine at each scrape: gauges, and counters that other modules keep."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Final

from prometheus_client.core import Metric

from placewright.api.boundedcache import kept_bytes
from placewright.cluster.cluster import Cluster
from placewright.engine.decidingpart import DecidingPart
from placewright.engine.engine import Engine
from placewright.engine.readingpart import ReadingPart
from placewright.framework.runtime.columnbudget import ColumnBudget
from placewright.framework.runtime.profileruntime import ProfileRuntime
from placewright.kube.client import ApiClient
from placewright.kube.writers.binder import BindCounts
from placewright.kube.writers.events import EventCounts
from placewright.kube.writers.podstatus import StatusCounts
from placewright.leadership.leaseobject import LEASE_NAME
from placewright.observability.metrics import own, upstream
from placewright.observability.metrics.family import MetricFamily, counter, gauge
from placewright.observability.metrics.series import Labels, counted, single
from placewright.queue.queue import SchedulingQueue

_POD_POPPED: Final = "PodPopped"
#: An outcome whose field has another name.
_EVENT_WORDS: Final = {"repeats": "repeated"}
#: Problems of a watch: the label, and the field of the counts.
_PROBLEMS: Final = (
    ("failed", "failures"), ("expired", "expired"), ("malformed", "malformed"),
    ("bad_object", "bad_objects"), ("sink_error", "sink_errors"),
)  # fmt: skip


def gauges(engine: Engine) -> Iterator[Metric]:
    """Read all gauges. Those of parts that have not started yet are empty."""
    leading, writing, deciding = engine.leading, engine.writing, engine.deciding
    leads = float(leading.leadership.active)
    yield counted(upstream.LEADER_ELECTION, {(LEASE_NAME,): leads} if engine.options.leader_elect else {})
    yield counted(own.LEADER, {(leading.replica.identity,): leads})
    yield single(own.LEADER_TERMS, float(leading.leadership.term))
    yield single(own.TAKEOVER_SECONDS, leading.takeover.seconds_without_decisions)
    yield from _api_server(writing.client)
    yield from _queue(deciding)
    yield from _tenants(deciding.queue)
    yield from _cache(deciding.cluster, deciding.column_budget)
    yield from _bindings(writing.binder.counts, deciding)
    yield from _writing(engine)
    yield from _watches(engine.reading)


def of_plugins(runtimes: Iterable[tuple[str, ProfileRuntime]]) -> Iterator[Metric]:
    """Read the metrics of plugins' own. Two profiles that run one plugin share a metric, and differ in the label `profile`."""
    families: dict[str, MetricFamily] = {}
    values: dict[str, dict[Labels, float]] = {}
    for profile, runtime in runtimes:
        for metric in runtime.metrics():
            make = counter if metric.name.endswith("_total") else gauge
            made = make(f"placewright_plugin_{metric.name}", metric.help, "profile", *metric.labels)
            family = families.setdefault(made.name, made)
            if family.labels == made.labels:  # of two packages with one name, the first one has it
                values.setdefault(made.name, {}).update({(profile, *labels): value for labels, value in metric.values.items()})
    yield from (counted(families[name], found) for name, found in values.items())


def _api_server(client: ApiClient) -> Iterator[Metric]:
    since = client.away.away_since
    yield single(own.AWAY, float(since is not None))
    yield single(own.AWAY_SECONDS, 0.0 if since is None else max(time.monotonic() - since, 0.0))


def _queue(deciding: DecidingPart) -> Iterator[Metric]:
    queue = deciding.queue
    sizes = queue.sizes()
    waiting = {("active",): sizes.active, ("backoff",): sizes.backoff, ("unschedulable",): sizes.unschedulable, ("gated",): sizes.gated}
    yield counted(upstream.PENDING_PODS, waiting)
    in_flight: Counter[Labels] = Counter({(_POD_POPPED,): len(queue.in_flight)})
    in_flight.update({(event,): number for event, number in queue.in_flight.events_by_label().items()})
    yield counted(upstream.INFLIGHT_EVENTS, in_flight)
    kept = {(plugin, name): pods for name in deciding.live.active for plugin, pods in queue.rejections(name).items()}
    yield counted(upstream.UNSCHEDULABLE_PODS, kept)
    yield single(own.SUSPECTS, float(len(queue.suspects)))
    yield from _given_up(deciding)
    marks = deciding.marks.counts
    outcomes = {"opened": marks.opened, "closed": marks.closed, "death": marks.deaths, "failed": marks.failed}
    yield counted(own.DECISION_MARKS, _by_name(outcomes))


def _given_up(deciding: DecidingPart) -> Iterator[Metric]:
    """Read given up pods. A profile that states giveUpAfterSeconds has a 0, so that the first pod shows as an increase."""
    limits = ((deciding.live.by_scheduler_name(queue.name), queue.wait_limit) for queue in deciding.queue.profile_queues())
    given_up = {active.profile.name: len(limit.given_up) for active, limit in limits if active is not None and limit is not None}
    yield counted(own.GIVEN_UP, _by_name(given_up))
    yield counted(own.PODS_GIVEN_UP, _by_name(dict.fromkeys(given_up, 0) | deciding.scheduler.given_up.counts))


def _tenants(queues: SchedulingQueue) -> Iterator[Metric]:
    fair = {queue.name: queue.fair for queue in queues.profile_queues() if queue.served and queue.fair is not None}
    waits = {(name, tenant): wait for name, heap in fair.items() for tenant, wait in heap.waits}
    yield counted(own.TENANT_WAIT, {labels: wait.seconds for labels, wait in waits.items()})
    yield counted(own.TENANT_PODS, {labels: float(wait.pods) for labels, wait in waits.items()})
    yield counted(own.TENANTS_WAITING, {(name,): float(sum(len(turns.tenants) for turns in heap.turns())) for name, heap in fair.items()})


def _cache(cluster: Cluster, budget: ColumnBudget) -> Iterator[Metric]:
    sizes = {("nodes",): cluster.node_count, ("pods",): cluster.pod_count_total, ("assumed_pods",): cluster.assumed_count}
    yield counted(upstream.CACHE_SIZE, sizes)
    yield single(own.COLUMN_BYTES, float(budget.held))
    yield single(own.COLUMN_BYTES_LIMIT, float(budget.limit))
    yield single(own.KEPT_BYTES, float(kept_bytes()))


def _bindings(counts: BindCounts, deciding: DecidingPart) -> Iterator[Metric]:
    outcomes = {
        "bound": counts.bound,
        "conflict": counts.conflicts,
        "refused": counts.refused,
        "retry": counts.retries,
        "lost_answer": counts.lost_answers,
    }
    yield counted(own.BINDINGS, _by_name(outcomes))
    binding = deciding.scheduler.binding
    yield counted(upstream.GOROUTINES, {("binding",): len(binding.under_way)})
    yield single(own.BINDINGS_UNRESOLVED, len(binding.unresolved))
    rooms = {queue.name: queue.room for queue in deciding.queue.profile_queues() if queue.served}
    standing = {(name, "on_their_way"): room.on_their_way for name, room in rooms.items()}
    yield counted(own.UNDER_WAY, standing | {(name, "aside"): room.aside for name, room in rooms.items()})


def _writing(engine: Engine) -> Iterator[Metric]:
    events = statuses = groups = repairs = restarts = dict[str, int]()
    if engine.started:
        events = {_EVENT_WORDS.get(name, name): count for name, count in _counts(engine.writing.events.counts)}
        statuses = dict(_counts(engine.writing.status.counts))
        groups = dict(_counts(engine.writing.group_status.counts))
        repairs = dict(engine.reading.event_handlers.repairs.counts())
        restarts = {name: writer.restarts for name, writer in engine.writing.outbox.items()}
    yield counted(own.EVENTS, _by_name(events))
    yield counted(own.STATUS_WRITES, _by_name(statuses))
    yield counted(own.GROUP_STATUS_WRITES, _by_name(groups))
    yield counted(own.WRITER_RESTARTS, _by_name(restarts))
    yield counted(own.REPAIRS, _by_name(repairs))
    # Each plugin that may reject has its 0, so that the first forgotten pod shows as an increase.
    plugins = {name for active in engine.deciding.live.active.values() for name in active.evaluator.runtime.interests}
    counts = engine.reading.forgotten.counts
    yield counted(own.FORGOTTEN, _by_name(dict.fromkeys(sorted(plugins), 0) | counts.forgotten))
    yield single(own.REDECIDED, counts.looked)


def _counts(counts: EventCounts | StatusCounts) -> Iterator[tuple[str, int]]:
    """Yield the fields of a class of counts, so that a new field is exported without a change here."""
    return ((one.name, getattr(counts, one.name)) for one in fields(counts))


def _watches(reading: ReadingPart) -> Iterator[Metric]:
    counts = [(one.source.resource, one.counts) for one in reading.running]
    yield counted(own.WATCHES, {(source,): count.watches for source, count in counts})
    yield counted(own.LISTS, {(source,): count.lists for source, count in counts})
    yield counted(own.WATCH_EVENTS, {(source,): count.events for source, count in counts})
    yield counted(own.WATCH_PROBLEMS, {(source, label): getattr(count, name) for source, count in counts for label, name in _PROBLEMS})


def _by_name(counts: Mapping[str, float]) -> dict[Labels, float]:
    return {(name,): count for name, count in counts.items()}


def profiles(deciding: DecidingPart) -> Iterator[Metric]:
    """Read the standing of each SchedulingProfile, by the object's name."""
    standings = list(deciding.profiles.standings().values())
    yield counted(own.PLUGIN_FAILURES, deciding.plugin_watch.totals)
    yield counted(own.PROFILE_RELOADS, {(name, result): number for (name, result), number in deciding.profiles.reloads.items()})
    # What is refused may not even have the shape of a profile, and so no schedulerName.
    claimed = {active.profile.name: name for name, active in deciding.live.active.items()}
    names = [(one.name, claimed.get(one.name, one.scheduler_name)) for one in standings]
    active = [standing.active_generation or 0 for standing in standings]
    yield counted(own.PROFILE_ACTIVE, dict(zip(names, active, strict=True)))
    yield counted(own.PROFILE_WANTED, dict(zip(names, (standing.observed_generation for standing in standings), strict=True)))
    ready = {(*name, one.reason.value): float(not one.reason.stalls) for name, one in zip(names, standings, strict=True)}
    yield counted(own.PROFILE_READY, ready)
    unclaimed: Counter[Labels] = Counter()
    for found, pods in deciding.unclaimed.waiting():
        unclaimed[found.ours, found.why.value] += pods
    yield counted(own.PODS_WITHOUT_PROFILE, unclaimed)
