"""The keyed heap against a sorted list."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from placewright.queue.order import KeyedHeap

uids = st.sampled_from("abcd")
steps = st.lists(
    st.one_of(
        st.tuples(st.just("push"), uids, st.integers(0, 1)),
        st.tuples(st.just("remove"), uids),
        st.tuples(st.just("pop")),
        st.tuples(st.just("negate")),
    ),
    max_size=60,
)


@given(steps)
def test_it_gives_what_a_stably_sorted_list_gives(steps: list[tuple[object, ...]]) -> None:
    heap: KeyedHeap[str] = KeyedHeap()
    keys: dict[str, int] = {}  # in order of arrival
    for step, *rest in steps:
        expected = min(keys, key=keys.__getitem__, default=None)
        match step, rest:
            case "push", [str(uid), int(key)]:
                heap.push(uid, (key,), uid)
                keys[uid] = key
            case "remove", [str(uid)]:
                assert heap.remove(uid) == (uid if keys.pop(uid, None) is not None else None)
            case "pop", []:
                assert heap.pop() == expected
                keys.pop(expected or "", None)
            case _:
                keys = {uid: -key for uid, key in keys.items()}
                heap.rekey(lambda uid: (keys[uid],))  # noqa: B023 - called before the next round
        assert len(heap) == len(keys)
        assert set(heap) == set(keys)
        assert heap.first() == min(keys, key=keys.__getitem__, default=None)


def test_an_item_whose_key_changes_keeps_its_arrival_among_equals() -> None:
    heap: KeyedHeap[str] = KeyedHeap()
    heap.push("a", (0,), "a")
    heap.push("b", (1,), "b")
    heap.push("a", (1,), "a")
    assert [heap.pop(), heap.pop()] == ["a", "b"]


def test_removed_items_do_not_pile_up() -> None:
    heap: KeyedHeap[int] = KeyedHeap()
    for number in range(10_000):
        heap.push("first", (0,), 0)
        heap.push("again", (number + 1,), number)
    assert len(heap._entries) < 200
    assert heap.pop() == 0
    assert heap.pop() == 9_999


def test_keys_of_another_kind_can_replace_the_old_ones() -> None:
    heap: KeyedHeap[str] = KeyedHeap()
    for uid in "abc":
        heap.push(uid, (1,), uid)
    heap.remove("a")
    heap.rekey(lambda uid: (uid,))
    heap.push("d", ("aa",), "d")
    assert [heap.pop() for _ in range(4)] == ["d", "b", "c", None]
