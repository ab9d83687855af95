from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from fake_api import FakeApi, Step, a_node, answer, bookmark, event, hang_up, listing, refuse, stream
from recording import RecordingSink

from kubesandbox.faults import Rule
from kubesandbox.server import Sandbox, SandboxOptions
from placewright.api.objects import Node, NodeSpec
from placewright.api.workloads import Service
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright.kube.errors import RetryBackoff
from placewright.kube.reflector import Reflector, Reflectors, Source

NODES = "/api/v1/nodes"
GONE = {"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired", "message": "too old"}


class Watching:
    """A fake server, a client and one reflector of nodes."""

    def __init__(self, api: FakeApi, client: ApiClient) -> None:
        self.api = api
        self.sink = RecordingSink()
        self.forever = asyncio.Event()
        quick = RetryBackoff(initial=0.001, maximum=0.002)
        self.reflector = Reflector(client, Source(NODES, Node), self.sink, backoff=quick)
        self.group = Reflectors([self.reflector])

    def lists(self, *steps: Step) -> None:
        self.api.on(f"GET {NODES}", *steps)

    def watches(self, *steps: Step) -> None:
        """The steps, and then one watch that stays silent."""
        self.api.on(f"WATCH {NODES}", *steps, stream(self.forever))

    @property
    def versions(self) -> list[str]:
        return [one.query["resourceVersion"] for one in self.api.asked("WATCH")]


@pytest.fixture
async def watching() -> AsyncIterator[Watching]:
    async with FakeApi() as api, api.client() as client:
        made = Watching(api, client)
        yield made
        made.forever.set()
        await made.group.stop()


async def test_pages_are_listed_one_after_another_and_then_watched_from_where_the_list_ended(watching: Watching) -> None:
    watching.lists(answer(listing(a_node("a"), following="more")), answer(listing(a_node("b"), version="12")))
    watching.watches(stream(event("ADDED", a_node("c", "13")), watching.forever))
    watching.group.start()
    await watching.sink.until_heard("added", "c")
    assert watching.sink.heard == [("added", "a"), ("added", "b"), ("synced",), ("added", "c")]
    first, second = watching.api.asked("GET")
    assert first.query["limit"] == "500" and second.query["continue"] == "more"
    assert watching.versions == ["12"]
    assert watching.api.asked("WATCH")[0].query["allowWatchBookmarks"] == "true"


async def test_selectors_go_to_the_server_with_list_and_watch() -> None:
    async with FakeApi() as api, api.client() as client:
        api.on("GET /api/v1/pods", answer(listing()))
        forever = asyncio.Event()
        api.on("WATCH /api/v1/pods", stream(forever))
        group = Reflectors([Reflector(client, Source("/api/v1/pods", Node, "spec.nodeName!=", "app=web"), RecordingSink())])
        group.start()
        (watch,) = await api.until_asked("WATCH")
        await group.stop()
        for request in (api.asked("GET")[0], watch):
            assert request.query["fieldSelector"] == "spec.nodeName!=" and request.query["labelSelector"] == "app=web"


async def test_a_broken_stream_is_resumed_after_the_last_event_without_a_new_list(watching: Watching) -> None:
    watching.lists(answer(listing(version="10")))
    watching.watches(stream(event("ADDED", a_node("a", "11")), broken=True), stream(event("ADDED", a_node("b", "12")), watching.forever))
    watching.group.start()
    await watching.sink.until_heard("added", "b")
    assert watching.versions == ["10", "11"]
    assert len(watching.api.asked("GET")) == 1


async def test_a_bookmark_moves_the_place_to_resume_from(watching: Watching) -> None:
    watching.lists(answer(listing(version="10")))
    watching.watches(stream(bookmark("77")))
    watching.group.start()
    await watching.api.until_asked("WATCH", times=2)
    assert watching.versions[:2] == ["10", "77"]
    assert watching.sink.heard == [("synced",)]


async def test_a_line_that_spans_chunks_is_one_event(watching: Watching) -> None:
    watching.lists(answer(listing()))
    line = event("ADDED", a_node("a", "11", metadata_padding="x" * 3_000_000))
    watching.watches(stream(line[:10], line[10:1_000_000], line[1_000_000:], watching.forever))
    watching.group.start()
    await watching.sink.until_heard("added", "a")
    assert watching.reflector.counts.malformed == 0


async def test_a_half_written_last_line_is_dropped_and_asked_for_again(watching: Watching) -> None:
    watching.lists(answer(listing(version="10")))
    line = event("ADDED", a_node("b", "12"))
    watching.watches(stream(event("ADDED", a_node("a", "11")) + line[:40], broken=True), stream(line, watching.forever))
    watching.group.start()
    await watching.sink.until_heard("added", "b")
    assert watching.versions == ["10", "11"]
    assert watching.reflector.counts.malformed == 0


async def test_410_in_the_stream_lists_again_and_tells_what_vanished(watching: Watching) -> None:
    watching.lists(answer(listing(a_node("a"), a_node("b"))), answer(listing(a_node("a"), a_node("c"), version="50")))
    watching.watches(stream(event("ERROR", GONE)), stream(watching.forever))
    watching.group.start()
    await watching.sink.until_synced(2)
    assert watching.sink.heard[3:] == [("added", "c"), ("deleted", "b"), ("synced",)]
    assert sorted(watching.reflector.store) == ["a", "c"]
    await watching.api.until_asked("WATCH", times=2)
    assert watching.versions == ["10", "50"]


async def test_410_as_the_status_of_the_watch_lists_again(watching: Watching) -> None:
    watching.lists(answer(listing(a_node("a"))), answer(listing()))
    watching.watches(refuse(410, "Gone"))
    watching.group.start()
    await watching.sink.until_heard("deleted", "a")
    assert watching.reflector.counts.expired == 1


async def test_pages_that_expire_half_way_are_listed_as_a_whole_and_nothing_is_told_twice(watching: Watching) -> None:
    watching.lists(answer(listing(a_node("a"), following="more")), refuse(410, "Expired"), answer(listing(a_node("a"), a_node("b"))))
    watching.watches()
    watching.group.start()
    await watching.sink.until_synced()
    assert watching.sink.heard == [("added", "a"), ("added", "b"), ("synced",)]
    assert "limit" not in watching.api.asked("GET")[2].query


async def test_what_vanished_between_an_expired_page_and_the_whole_list_is_told_as_deleted(watching: Watching) -> None:
    watching.lists(answer(listing(a_node("a"), following="more")), refuse(410, "Expired"), answer(listing(a_node("b"))))
    watching.watches()
    watching.group.start()
    await watching.sink.until_synced()
    assert watching.sink.heard == [("added", "a"), ("added", "b"), ("deleted", "a"), ("synced",)]


async def test_a_list_that_breaks_off_tells_no_deletions(watching: Watching) -> None:
    watching.lists(
        answer(listing(a_node("a"), a_node("b"))),
        answer(listing(a_node("a"), following="more")),
        refuse(500, "InternalError"),
        answer(listing(a_node("a"), a_node("b"), version="60")),
    )
    watching.watches(stream(event("ERROR", GONE)), stream(watching.forever))
    watching.group.start()
    await watching.sink.until_synced(2)
    assert ("deleted", "b") not in watching.sink.heard


async def test_errors_and_a_server_that_hangs_up_are_waited_out(watching: Watching) -> None:
    watching.lists(refuse(500, "InternalError"), refuse(429, "TooManyRequests"), hang_up(), answer(listing(a_node("a"))))
    watching.watches(refuse(503), hang_up(), stream(event("ADDED", a_node("b", "11")), watching.forever))
    watching.group.start()
    await watching.sink.until_heard("added", "b")
    assert watching.sink.heard == [("added", "a"), ("synced",), ("added", "b")]


async def test_an_error_event_other_than_410_resumes_the_watch(watching: Watching) -> None:
    watching.lists(answer(listing(version="10")))
    watching.watches(
        stream(event("ERROR", {"kind": "Status", "code": 500, "reason": "InternalError"})),
        stream(event("ADDED", a_node("a", "11")), watching.forever),
    )
    watching.group.start()
    await watching.sink.until_heard("added", "a")
    assert len(watching.api.asked("GET")) == 1


async def test_a_line_of_garbage_leads_to_a_new_list(watching: Watching) -> None:
    watching.lists(answer(listing(a_node("a"))), answer(listing(a_node("b"), version="30")))
    watching.watches(stream(b"<html>out of order</html>\n"))
    watching.group.start()
    await watching.sink.until_synced(2)
    assert sorted(watching.reflector.store) == ["b"]
    assert watching.reflector.counts.malformed == 1


async def test_a_list_of_garbage_is_asked_for_again(watching: Watching) -> None:
    watching.lists(answer("out of order"), answer(listing(a_node("a"))))
    watching.watches()
    watching.group.start()
    await watching.sink.until_heard("added", "a")
    assert sorted(watching.reflector.store) == ["a"]
    assert watching.reflector.counts.malformed == 1


async def test_a_bad_object_is_logged_once_and_counted_and_the_others_go_on(watching: Watching, caplog: pytest.LogCaptureFixture) -> None:
    bad = a_node("bad", "1", spec={"taints": 7})
    watching.lists(answer(listing(a_node("a"), bad)))
    watching.watches(stream(event("MODIFIED", bad), event("MODIFIED", bad), event("ADDED", a_node("c", "12")), watching.forever))
    with caplog.at_level(logging.WARNING):
        watching.group.start()
        await watching.sink.until_heard("added", "c")
    assert watching.reflector.counts.bad_object == 3
    assert sum("bad ignored" in line for line in caplog.messages) == 1


async def test_a_field_beyond_its_bound_is_not_kept_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    def service(name: str, version: str, pairs: int) -> dict[str, Any]:
        meta = {"name": name, "namespace": "shop", "resourceVersion": version}
        return {"metadata": meta, "spec": {"selector": {f"key-{index}": "v" * 60 for index in range(pairs)}}}

    sink, forever = RecordingSink(), asyncio.Event()
    async with FakeApi() as api, api.client() as client:
        api.on("GET /api/v1/services", answer(listing(service("large", "1", 1_000), service("small", "2", 3))))
        api.on(
            "WATCH /api/v1/services", stream(event("MODIFIED", service("large", "3", 1_000)), event("ADDED", service("c", "4", 1)), forever)
        )
        group = Reflectors([reflector := Reflector(client, Source("/api/v1/services", Service), sink)])
        with caplog.at_level(logging.WARNING):
            group.start()
            await sink.until_heard("added", "c")
        forever.set()
        await group.stop()
    assert {key: len(kept.spec.selector or ()) for key, kept in reflector.store.items()} == {"shop/large": 0, "shop/small": 3, "shop/c": 1}
    assert reflector.store["shop/large"].metadata.resource_version == "3"
    [line] = [line for line in caplog.messages if "large" in line]
    assert "spec.selector: " in line and "bytes of JSON; this scheduler reads at most 32768" in line


async def test_a_known_object_that_becomes_unreadable_stays_as_last_read_even_over_a_new_list(watching: Watching) -> None:
    bad = a_node("a", "11", spec={"taints": 7})
    watching.lists(answer(listing(a_node("a", "1"))), answer(listing(bad)))
    watching.watches(stream(event("MODIFIED", bad), event("ERROR", GONE)))
    watching.group.start()
    await watching.sink.until_synced(2)
    assert watching.sink.heard == [("added", "a"), ("synced",), ("synced",)]
    assert watching.reflector.store["a"].metadata.resource_version == "1"


async def test_an_unreadable_object_is_still_told_as_deleted(watching: Watching) -> None:
    watching.lists(answer(listing(a_node("a"))))
    watching.watches(stream(event("DELETED", a_node("a", "11", spec={"taints": 7})), watching.forever))
    watching.group.start()
    await watching.sink.until_heard("deleted", "a")
    assert watching.sink.heard == [("added", "a"), ("synced",), ("deleted", "a")]
    assert sorted(watching.reflector.store) == []


async def test_the_same_event_twice_is_told_once(watching: Watching) -> None:
    watching.lists(answer(listing(a_node("a", "5"))))
    added, deleted, last = event("ADDED", a_node("a", "5")), event("DELETED", a_node("a", "11")), event("ADDED", a_node("z", "12"))
    watching.watches(stream(added, added, deleted, deleted, last, watching.forever))
    watching.group.start()
    await watching.sink.until_heard("added", "z")
    assert watching.sink.heard == [("added", "a"), ("synced",), ("deleted", "a"), ("added", "z")]


async def test_a_deletion_that_is_told_again_leaves_the_namesake_alone(watching: Watching) -> None:
    watching.lists(answer(listing(a_node("a", "5", uid="one"))))
    deleted, added = event("DELETED", a_node("a", "11", uid="one")), event("ADDED", a_node("a", "12", uid="two"))
    watching.watches(stream(deleted, added, deleted, event("ADDED", a_node("z", "13")), watching.forever))
    watching.group.start()
    await watching.sink.until_heard("added", "z")
    assert watching.sink.heard == [("added", "a"), ("synced",), ("deleted", "a"), ("added", "a"), ("added", "z")]


async def test_a_namesake_is_told_as_a_deletion_and_an_addition(watching: Watching) -> None:
    watching.lists(answer(listing(a_node("a", "5", uid="one"))), answer(listing(a_node("a", "40", uid="two"))))
    watching.watches(stream(event("ERROR", GONE)))
    watching.group.start()
    await watching.sink.until_synced(2)
    assert watching.sink.heard[2:] == [("deleted", "a"), ("added", "a"), ("synced",)]


async def test_a_sink_that_fails_on_one_object_still_hears_of_the_others(watching: Watching) -> None:
    class Picky(RecordingSink):
        def changed(self, old: Node | None, new: Node) -> None:
            if new.metadata.name == "a":
                raise RuntimeError("not this one")
            super().changed(old, new)

    picky = Picky()
    watching.reflector.sink = picky
    watching.lists(answer(listing(a_node("a"), a_node("b"))))
    watching.watches()
    watching.group.start()
    await picky.until_synced()
    assert picky.heard == [("added", "b"), ("synced",)]
    assert watching.reflector.counts.sink_error == 1


async def test_a_forbidden_collection_is_said_once_and_named_as_not_synced(watching: Watching, caplog: pytest.LogCaptureFixture) -> None:
    watching.lists(refuse(403, "Forbidden"))
    with caplog.at_level(logging.WARNING):
        watching.group.start()
        await watching.api.until_asked("GET", times=3)
    assert watching.group.unsynced() == [NODES]
    assert sum("403 Forbidden" in line for line in caplog.messages) == 1


async def test_a_watch_that_breaks_off_once_is_no_trouble(watching: Watching, caplog: pytest.LogCaptureFixture) -> None:
    watching.lists(answer(listing(a_node("a"))))
    watching.watches(stream(event("ADDED", a_node("b", "12")), broken=True))
    with caplog.at_level(logging.WARNING):
        watching.group.start()
        await watching.api.until_asked("WATCH", times=2)
    assert watching.reflector.counts.failed == 1
    assert caplog.messages == []


async def test_a_list_that_breaks_off_again_and_again_is_said_once_in_words(watching: Watching, caplog: pytest.LogCaptureFixture) -> None:
    broken = stream(b'{"items": [', broken=True)
    watching.lists(broken, broken, broken, answer(listing(a_node("a"))))
    watching.watches()
    with caplog.at_level(logging.WARNING):
        watching.group.start()
        await watching.sink.until_synced(1)
    assert caplog.messages == [f"{NODES}: GET {NODES}: the answer broke off; it is read again"]


async def test_retry_after_is_obeyed_before_the_list_is_asked_for_again() -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    async with FakeApi() as api, api.client() as client:
        sink, forever = RecordingSink(), asyncio.Event()
        api.on(f"GET {NODES}", refuse(429, "TooManyRequests", **{"Retry-After": "7"}), answer(listing()))
        api.on(f"WATCH {NODES}", stream(forever))
        group = Reflectors([Reflector(client, Source(NODES, Node), sink, backoff=RetryBackoff(0.1, 0.1), sleep=sleep)])
        group.start()
        await sink.until_synced()
        await group.stop()
    assert len(waited) == 1 and 7 <= waited[0] <= 7.1


async def test_watches_that_end_at_once_are_asked_for_with_growing_waits_and_long_quiet_ones_without() -> None:
    now, waited = 0.0, []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    def lasting(seconds: float) -> Step:
        async def step(request: object) -> object:
            nonlocal now
            now += seconds
            return await stream()(request)  # type: ignore[arg-type]

        return step  # type: ignore[return-value]

    async with FakeApi() as api, api.client() as client:
        api.on(f"GET {NODES}", answer(listing()))
        api.on(f"WATCH {NODES}", lasting(0), lasting(0), lasting(400), lasting(0), stream(api.open))
        backoff = RetryBackoff(1, 30, uniform=lambda: 1.0)
        group = Reflectors([Reflector(client, Source(NODES, Node), RecordingSink(), backoff=backoff, sleep=sleep, clock=lambda: now)])
        group.start()
        await api.until_asked("WATCH", times=5)
        await group.stop()
    assert waited == [1, 2, 1]


async def test_a_quiet_watch_that_lasted_and_was_cut_off_is_asked_for_again_as_after_a_first_failure() -> None:
    waited: list[float] = []
    calls = itertools.count()

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    async with FakeApi() as api, api.client() as client:
        api.on(f"GET {NODES}", answer(listing()))
        cut = stream(b"", broken=True)
        api.on(f"WATCH {NODES}", refuse(503), refuse(503), cut, cut, stream(api.open))
        backoff = RetryBackoff(1, 30, uniform=lambda: 1.0)
        source, sink = Source(NODES, Node), RecordingSink()
        # Minutes pass between any two looks at the clock, so each watch that opens lasts.
        group = Reflectors([Reflector(client, source, sink, backoff=backoff, sleep=sleep, clock=lambda: 400.0 * next(calls))])
        group.start()
        await api.until_asked("WATCH", times=5)
        await group.stop()
    assert waited == [1, 2, 1, 1]


async def test_against_the_sandbox_nothing_is_missed_over_broken_watches_and_forgotten_history() -> None:
    async with Sandbox(SandboxOptions(nodes=5)) as sandbox, ApiClient(load_config(str(sandbox.kubeconfig))) as client:
        sink = RecordingSink()
        quick = RetryBackoff(initial=0.001, maximum=0.01)
        reflector = Reflector(client, Source(NODES, Node), sink, backoff=quick, page_limit=2)
        group = Reflectors([reflector])
        group.start()
        await asyncio.wait_for(group.wait_synced(), 5)
        names = sorted(reflector.store)
        assert len(names) == 5
        sandbox.faults.add(Rule(path=NODES, watch=True, code=503))
        sandbox.faults.drop_watches()
        await client.delete(f"{NODES}/{names[0]}")
        await client.post(NODES, {"metadata": {"name": "late"}})
        sandbox.faults.compact()
        sandbox.faults.clear()
        await sink.until_heard("deleted", names[0])
        await sink.until_heard("added", "late")
        await group.stop()
    assert sorted(reflector.store) == sorted([*names[1:], "late"])


async def test_wait_synced_returns_when_all_lists_are_complete(watching: Watching) -> None:
    gate = asyncio.Event()

    async def late(request: object) -> object:
        await gate.wait()
        return await answer(listing())(request)  # type: ignore[arg-type]

    watching.lists(late)  # type: ignore[arg-type]
    watching.watches()
    watching.group.start()
    waiting = asyncio.create_task(watching.group.wait_synced())
    await watching.api.until_asked("GET")
    assert not waiting.done()
    gate.set()
    await asyncio.wait_for(waiting, 5)


async def test_slow_answers_to_one_collection_do_not_hold_up_another(watching: Watching) -> None:
    gate = asyncio.Event()

    async def slow(_: object) -> object:
        await gate.wait()
        return await refuse(500)(_)  # type: ignore[arg-type]

    watching.lists(answer(listing(a_node("a"))))
    watching.watches()
    watching.api.on("GET /api/v1/pods", slow)  # type: ignore[arg-type]
    other = Reflector(watching.reflector.client, Source("/api/v1/pods", Node), RecordingSink())
    group = Reflectors([other, watching.reflector])
    group.start()
    await watching.sink.until_synced()
    assert group.unsynced() == ["/api/v1/pods"]
    gate.set()
    await group.stop()


async def test_a_redirected_reflector_keeps_what_it_knows_and_tells_what_changed_meanwhile(watching: Watching) -> None:
    elsewhere = "/apis/newer/v1/nodes"
    ends = asyncio.Event()
    watching.lists(answer(listing(a_node("same", "1"), a_node("changed", "2"), a_node("gone", "3"))))
    watching.api.on(f"WATCH {NODES}", stream(event("MODIFIED", a_node("same", "5")), ends))
    watching.api.on(f"GET {elsewhere}", answer(listing(a_node("same", "5"), a_node("changed", "6"), version="7")))
    watching.api.on(f"WATCH {elsewhere}", stream(watching.forever))
    watching.group.start()
    await watching.sink.until_heard("updated", "same")
    watching.reflector.redirect(Source(elsewhere, Node))
    ends.set()
    await watching.api.until_asked("WATCH", elsewhere)
    heard = watching.sink.heard
    assert heard[heard.index(("updated", "same")) + 1 :] == [("updated", "changed"), ("deleted", "gone"), ("synced",)]
    assert watching.versions[-1] == "7"


async def test_a_collection_that_is_gone_is_found_where_the_reflector_is_redirected_to(watching: Watching) -> None:
    elsewhere = "/apis/newer/v1/nodes"
    watching.lists(refuse(404, "NotFound"))
    watching.api.on(f"GET {elsewhere}", answer(listing(a_node("a"))))
    watching.api.on(f"WATCH {elsewhere}", stream(watching.forever))
    watching.group.start()
    await watching.api.until_asked("GET", NODES)
    watching.reflector.redirect(Source(elsewhere, Node))
    await watching.sink.until_heard("added", "a")
    assert watching.sink.heard[0] == ("added", "a")
    assert sorted(watching.reflector.store) == ["a"]


async def test_a_source_of_an_old_version_tells_its_objects_as_they_mean_in_the_newest() -> None:
    def upgraded(found: Node) -> Node:
        return Node(found.metadata, NodeSpec(unschedulable=True))

    forever = asyncio.Event()
    async with FakeApi() as api, api.client() as client:
        api.on(f"GET {NODES}", answer(listing(a_node("a"))))
        api.on(f"WATCH {NODES}", stream(event("ADDED", a_node("b", "9")), forever))
        sink = RecordingSink()
        reflector = Reflector(client, Source(NODES, Node, upgrade=upgraded), sink)
        group = Reflectors([reflector])
        group.start()
        await sink.until_heard("added", "b")
        forever.set()
        await group.stop()
    assert all(found.spec.unschedulable for found in reflector.store.values())


@pytest.mark.parametrize(
    ("path", "resource"),
    [
        ("/api/v1/pods", "pods"),
        ("/apis/storage.k8s.io/v1/storageclasses", "storageclasses.storage.k8s.io"),
        ("/apis/scheduling.k8s.io/v1alpha2/podgroups", "podgroups.scheduling.k8s.io"),
        ("/apis/scheduling.x-k8s.io/v1alpha1/podgroups", "podgroups.scheduling.x-k8s.io"),
        ("/apis/scheduling.volcano.sh/v1beta1/podgroups", "podgroups.scheduling.volcano.sh"),
    ],
)
def test_a_resource_is_named_with_its_group(path: str, resource: str) -> None:
    assert Source(path, Node).resource == resource


# --- asked for a list ------------------------------------------------------------------------------------------------------------


async def test_a_list_that_is_asked_for_ends_the_watch_and_goes_on_from_there(watching: Watching) -> None:
    watching.lists(answer(listing(a_node("a"), a_node("b"), version="10")), answer(listing(a_node("b"), a_node("c"), version="20")))
    watching.api.on(f"WATCH {NODES}", stream(watching.forever))
    watching.group.start()
    await watching.api.until_asked("WATCH")
    await asyncio.wait_for(watching.reflector.list_anew(), 5)
    assert watching.sink.heard[-3:] == [("added", "c"), ("deleted", "a"), ("synced",)]
    await watching.api.until_asked("WATCH", times=2)
    assert watching.versions == ["10", "20"]


async def test_who_asks_while_a_list_is_under_way_gets_one_that_begins_afterwards(watching: Watching) -> None:
    under_way = asyncio.Event()

    async def slow(request: object) -> object:
        under_way.set()
        await watching.api.open.wait()
        return await answer(listing(a_node("a"), version="10"))(request)  # type: ignore[arg-type]

    watching.lists(slow, answer(listing(a_node("a"), a_node("b"), version="20")))  # type: ignore[arg-type]
    watching.api.on(f"WATCH {NODES}", stream(watching.forever))
    watching.group.start()
    await under_way.wait()
    asked = [asyncio.create_task(watching.reflector.list_anew()) for _ in range(3)]
    await asyncio.sleep(0)
    watching.api.open.set()
    await asyncio.wait_for(asyncio.gather(*asked), 5)
    assert watching.reflector.store.keys() == {"a", "b"} and len(watching.api.asked("GET")) == 2


async def test_a_list_that_was_asked_for_and_fails_is_tried_again(watching: Watching) -> None:
    watching.lists(answer(listing(a_node("a"), version="10")), refuse(500), hang_up(), answer(listing(a_node("b"), version="20")))
    watching.api.on(f"WATCH {NODES}", stream(watching.forever))
    watching.group.start()
    await watching.api.until_asked("WATCH")
    await asyncio.wait_for(watching.reflector.list_anew(), 5)
    assert watching.reflector.store.keys() == {"b"}


async def test_news_that_come_with_the_question_are_not_lost(watching: Watching) -> None:
    watching.lists(answer(listing(a_node("a"), version="10")), answer(listing(a_node("a", "12"), version="20")))
    watching.api.on(f"WATCH {NODES}", stream(event("MODIFIED", a_node("a", "12")), watching.forever))
    watching.group.start()
    await watching.sink.until_heard("added", "a")
    await asyncio.wait_for(watching.reflector.list_anew(), 5)
    assert watching.reflector.store["a"].metadata.resource_version == "12" and watching.reflector.version == "20"
