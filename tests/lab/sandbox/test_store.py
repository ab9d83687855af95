"""The store: versions, history, and what of it may be forgotten."""

from __future__ import annotations

import msgspec
import pytest

from kubesandbox.status import ApiError
from kubesandbox.storage.store import Change, Store
from lab.sandbox.makers import Object, config_map

MAPS = ("", "configmaps")


def put(store: Store, name: str, namespace: str = "default", **data: str) -> int:
    content: Object = config_map(name, **data)
    content["metadata"]["uid"] = f"uid-{name}"
    return store.put(MAPS, namespace, name, content).version


def test_every_write_gets_the_next_version_whatever_its_type() -> None:
    store = Store()
    first = put(store, "a")
    pod: Object = {"kind": "Pod", "metadata": {"uid": "u"}}
    assert store.put(("", "pods"), "default", "p", pod).version == first + 1
    assert put(store, "a", key="changed") == first + 2
    assert store.version == first + 2


def test_the_bytes_kept_are_the_object_with_its_version() -> None:
    store = Store()
    version = put(store, "a", key="value")
    found = store.get(MAPS, "default", "a")
    assert found is not None
    assert msgspec.json.decode(found.encoded) == found.object
    assert found.object["metadata"]["resourceVersion"] == str(version)
    assert found.encoded.startswith(b'{"kind":"ConfigMap","apiVersion":"v1",')


def test_objects_are_listed_by_namespace_and_name() -> None:
    store = Store()
    for namespace, name in (("b", "x"), ("a", "z"), ("a", "y")):
        put(store, name, namespace)
    assert [(each.namespace, each.name) for each in store.listed(MAPS)] == [("a", "y"), ("a", "z"), ("b", "x")]
    assert [each.name for each in store.listed(MAPS, "a")] == ["y", "z"]
    assert store.listed(MAPS, "nowhere") == []


def test_a_removed_object_is_shown_as_it_was_under_the_version_of_its_removal() -> None:
    store = Store()
    put(store, "a", key="value")
    removed = store.remove(MAPS, "default", "a")
    assert removed.object["data"] == {"key": "value"}
    assert removed.object["metadata"]["resourceVersion"] == str(store.version)
    assert store.get(MAPS, "default", "a") is None
    with pytest.raises(KeyError):
        store.remove(MAPS, "default", "a")


def test_a_version_once_read_is_never_changed_by_a_later_write() -> None:
    store = Store()
    put(store, "a", key="old")
    before = store.get(MAPS, "default", "a")
    put(store, "a", key="new")
    assert before is not None
    assert before.object["data"] == {"key": "old"}


def test_changes_since_a_version_come_in_order_and_once() -> None:
    store = Store()
    start = put(store, "a")
    put(store, "b")
    put(store, "a", key="changed")
    store.remove(MAPS, "default", "b")
    found = [(change.type, change.version) for change in store.collection(MAPS).since(start)]
    assert found == [("ADDED", start + 1), ("MODIFIED", start + 2), ("DELETED", start + 3)]
    assert store.collection(MAPS).since(store.version) == []


def test_a_version_older_than_the_history_is_refused_and_the_oldest_kept_is_not() -> None:
    store = Store(history=3)
    versions = [put(store, f"a-{number}") for number in range(6)]
    collection = store.collection(MAPS)
    with pytest.raises(ApiError, match=rf"too old resource version: {versions[0]} \({versions[2]}\)"):
        collection.since(versions[0])
    assert [change.version for change in collection.since(versions[2])] == versions[-3:]


def test_history_is_bounded() -> None:
    store = Store(history=10)
    for number in range(1000):
        put(store, "a", key=str(number))
    assert len(store.collection(MAPS).since(store.version - 10)) == 10
    with pytest.raises(ApiError, match="too old resource version"):
        store.collection(MAPS).since(store.version - 20)


def test_compaction_forgets_everything_up_to_now_and_nothing_later() -> None:
    store = Store()
    before = put(store, "a")
    put(store, "b")
    store.compact()
    with pytest.raises(ApiError, match="too old resource version"):
        store.collection(MAPS).since(before)
    assert store.collection(MAPS).since(store.version) == []
    put(store, "c")
    assert len(store.collection(MAPS).since(store.compacted)) == 1


def test_listeners_hear_of_a_change_in_the_step_that_stores_it() -> None:
    store = Store()
    heard: list[Change] = []
    everything: list[tuple[str, str]] = []
    store.collection(MAPS).listeners.append(heard.append)
    store.listeners.append(lambda key, change: everything.append(key))
    put(store, "a")
    assert [change.type for change in heard] == ["ADDED"]
    store.put(("", "pods"), "default", "p", {"kind": "Pod", "metadata": {"uid": "u"}})
    assert len(heard) == 1
    assert everything == [MAPS, ("", "pods")]
