"""What values are said to take, beside what Python says that they took; and caches that are bounded by it."""

from __future__ import annotations

import gc
import tracemalloc
from collections import OrderedDict
from collections.abc import Callable, Mapping
from enum import Enum
from random import Random
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostilepods import KINDS, Dice, hostile_pod
from placewright.api.boundedcache import ENTRY_BYTES, BoundedCache, SharedBytes, forget_unasked
from placewright.api.bytecount import COUNTED, LONGEST_KEY, UNENDING, bytes_of, estimate_bytes, object_bytes, sample, short_key
from placewright.api.decode import decode
from placewright.api.objects import Pod
from placewright.api.pods import PodInfo, held_bytes
from placewright.api.selectors import CompiledRequirement, NodeTerm, Selector
from randomcases import cases


def traced(make: Callable[[], Any]) -> tuple[Any, int]:
    """A value, and the bytes that were allocated for it and not freed."""
    make()  # what is loaded, or interned, is there by now
    gc.collect()
    tracemalloc.start()
    try:
        value = make()
        gc.collect()
        return value, tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def words(count: int, length: int, seed: int = 1) -> list[str]:
    letters = Random(seed).randbytes(count * length).hex()
    return [letters[begin : begin + length] for begin in range(0, count * length, length)]


def requirement(key: str, seed: int) -> CompiledRequirement:
    return CompiledRequirement(key, "In", frozenset(words(10, 20, seed)))


MAKERS: Mapping[str, Callable[[], Any]] = {
    "texts": lambda: tuple(words(2000, 30)),
    "a long text": lambda: "".join(words(1, 100_000)),
    "bytes": lambda: b"".join([each.encode() for each in words(100, 1000)]),
    "a set of pairs": lambda: frozenset((each, each[:5]) for each in words(1000, 40)),
    "a mapping": lambda: {each: each.upper() for each in words(1000, 40)},
    "a column": lambda: (np.zeros(100_000, np.int64), np.zeros(1000, np.bool_)),
    "a selector": lambda: Selector(tuple(requirement(each, n) for n, each in enumerate(words(100, 20)))),
    "terms": lambda: [NodeTerm((CompiledRequirement(each, "Exists", frozenset()),), ()) for each in words(500, 30)],
}  # fmt: skip


@pytest.mark.parametrize("kind", MAKERS)
def test_a_value_takes_about_what_it_is_said_to_take(kind: str) -> None:
    value, took = traced(MAKERS[kind])
    assert 0.7 * took <= bytes_of(value, most=10**9) <= 1.6 * took


def test_a_count_ends_where_more_makes_no_difference() -> None:
    assert COUNTED < bytes_of(tuple(words(100_000, 40))) < COUNTED + 2**20
    assert bytes_of(tuple(words(1000, 40)), most=500) < 10_000


def test_what_everybody_shares_and_what_a_value_only_knows_of_are_not_counted() -> None:
    class Colour(Enum):
        RED = "red"

    class Cluster:
        def __init__(self) -> None:
            self.rows = [0] * 100_000

    assert bytes_of(None) == bytes_of(True) == bytes_of(int) == 0
    assert bytes_of(Colour.RED) < 100
    assert bytes_of((Cluster(),)) < 300
    assert bytes_of(MappingProxyType({"a": "x" * 1000})) > 1000


def encoded_pod(spec: Mapping[str, Any] | None = None, **meta: Any) -> bytes:
    metadata = {"name": "web-1", "namespace": "default", "uid": "0" * 36, "labels": {"app": "web", "pod-template-hash": "abc"}, **meta}
    container = {"name": "c", "image": "registry.example.com/web:1", "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}}}
    return msgspec.json.encode({"metadata": metadata, "spec": {"containers": [container], **(spec or {})}})


PODS: Mapping[str, bytes] = {
    "usual": encoded_pod(),
    "annotated": encoded_pod(annotations=dict.fromkeys(words(1000, 30), "x" * 200)),
    "labelled": encoded_pod(labels={each: each for each in words(3000, 30)}),
    "resources": encoded_pod({"containers": [{"name": "c", "resources": {"requests": dict.fromkeys(words(5000, 20), "1")}}]}),
    "tolerant": encoded_pod({"tolerations": [{"key": each, "operator": "Exists"} for each in words(3000, 10)]}),
    "short values": encoded_pod({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "a", "operator": "In", "values": words(20_000, 3)}]}]}}}}),
}  # fmt: skip


@pytest.mark.parametrize("kind", PODS)
def test_a_pod_takes_no_more_than_a_few_times_what_is_reckoned_from_its_text(kind: str) -> None:
    text = PODS[kind]
    info, took = traced(lambda: PodInfo(msgspec.json.decode(text, type=Pod)))
    assert took / 2.5 <= object_bytes(info.pod) <= 12 * took
    assert held_bytes(None, info, info.pod) == 2 * object_bytes(info.pod)


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_short_keys_are_equal_for_equal_texts_alone_and_never_long(one: bytes, other: bytes) -> None:
    assert (short_key(one) == short_key(other)) is (one == other)
    assert len(short_key(one)) <= LONGEST_KEY


# --- caches ------------------------------------------------------------------------------------------------------------------


class Model:
    """The same, entry by entry."""

    def __init__(self, limit: int, most: int, largest: int) -> None:
        self.limit, self.most, self.largest = limit, most, largest
        self.entries: OrderedDict[int, tuple[str, int]] = OrderedDict()

    def get(self, key: int) -> str | None:
        if key in self.entries:
            self.entries.move_to_end(key)
        return self.entries.get(key, (None, 0))[0]

    def put(self, key: int, value: str, nbytes: int) -> None:
        self.entries.pop(key, None)
        if nbytes + ENTRY_BYTES <= self.largest:
            self.entries[key] = (value, nbytes + ENTRY_BYTES)
        while self.nbytes > self.limit or len(self.entries) > self.most:
            self.entries.popitem(last=False)

    @property
    def nbytes(self) -> int:
        return sum(nbytes for _, nbytes in self.entries.values())


@settings(max_examples=cases(200))
@given(st.lists(st.tuples(st.sampled_from(("get", "put", "pop", "drop")), st.integers(0, 8), st.integers(0, 3000)), max_size=40))
def test_a_cache_keeps_what_was_asked_for_last_as_far_as_bytes_and_entries_go(steps: list[tuple[str, int, int]]) -> None:
    cache: BoundedCache[int, str] = BoundedCache(5000, most=4, largest=2500)
    model = Model(5000, 4, 2500)
    for number, (act, key, nbytes) in enumerate(steps):
        if act == "get":
            assert cache.get(key) == model.get(key)
        elif act == "put":
            model.put(key, str(number), nbytes)
            assert cache.put(key, str(number), nbytes) is (key in model.entries)
        elif act == "pop":
            assert cache.pop(key) == model.entries.pop(key, (None, 0))[0]
        elif model.entries:
            cache.drop_oldest()
            model.entries.popitem(last=False)
        assert (list(cache), cache.nbytes) == (list(model.entries), model.nbytes)
    cache.clear()
    assert (len(cache), cache.nbytes) == (0, 0)


@settings(max_examples=cases(200))
@given(st.lists(st.tuples(st.sampled_from(("get", "put", "pop", "beat")), st.integers(0, 5)), max_size=40))
def test_an_entry_goes_at_the_second_beat_after_it_was_last_asked_for_or_put(steps: list[tuple[str, int]]) -> None:
    cache: BoundedCache[int, str] = BoundedCache(10**6)
    asked: dict[int, int] = {}
    beats = 0
    for act, key in steps:
        if act == "put":
            cache.put(key, "x", 1)
            asked[key] = beats
        elif act == "get" and cache.get(key):
            asked[key] = beats
        elif act == "pop":
            cache.pop(key)
            asked.pop(key, None)
        elif act == "beat":
            forget_unasked()
            beats += 1
        assert set(cache) == {each for each, at in asked.items() if beats - at < 2}


def test_of_caches_that_share_a_limit_the_largest_gives_way_and_one_that_is_gone_takes_nothing() -> None:
    shared = SharedBytes(100_000)
    large: BoundedCache[int, str] = BoundedCache(shared=shared)
    small: BoundedCache[int, str] = BoundedCache(shared=shared)
    small.put(0, "a", 3000)
    for number in range(100):
        large.put(number, "b", 3000)
        assert shared.held <= shared.limit
    assert 0 in small
    assert len(large) > 10
    for number in range(100):
        small.put(number, "c", 3000)
    assert shared.held <= shared.limit
    assert abs(large.nbytes - small.nbytes) <= shared.limit / 2
    del large
    gc.collect()
    assert shared.held == small.nbytes


def test_pods_of_all_sizes_are_estimated_within_three_tenths_of_what_is_allocated() -> None:
    """An ordinary pod, and one of each hostile kind: some are a hundred times as large as others, and few of them are drawn."""
    dice = Dice(7, 100_000)
    bodies = [hostile_pod(dice, number, "placewright") for number in range(10 * len(KINDS))]
    bodies += [{"metadata": {"name": f"p{number}", "namespace": "d"}, "spec": {"containers": [{"name": "main"}]}} for number in range(2000)]
    texts = [msgspec.json.encode(body) for body in bodies]
    gc.collect()
    tracemalloc.start()
    pods = [decode(text, Pod) for text in texts]
    took = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    sizes = [max(len(text) - 100, 1) for text in texts]
    assert took / 1.3 < estimate_bytes(pods, sizes) < took * 1.3
    assert estimate_bytes(pods[:20]) == sum(bytes_of(each, UNENDING) for each in pods[:20])
    assert estimate_bytes([]) == 0


@given(st.lists(st.integers(1, 1000), max_size=300))
def test_a_sample_stands_for_as_many_bytes_as_all_have(sizes: list[int]) -> None:
    assert sum(number * size for size, number in sample(sizes, sizes)) == pytest.approx(sum(sizes))
    assert sum(number for _, number in sample(sizes)) == pytest.approx(len(sizes))
    assert {size for size, _ in sample(sizes, sizes)} >= {size for size in sizes if 24 * size > sum(sizes)}, "a large one is always drawn"
