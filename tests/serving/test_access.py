"""Who is answered: health is for everybody, the rest for those whom the cluster lets read it, and debug pages only on this machine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from handlers.stage import DEADLINE
from kubesandbox.faults import Rule
from kubesandbox.server import Sandbox, SandboxOptions
from placewright.http.routes import Answer, Audience, Endpoint, Question, RequestRefused
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright.observability.logs import FEW, Repeats
from placewright.serving.access import AskingTheApiServer, is_loopback
from placewright.serving.reviewlanes import MOST_STRANGERS, REMEMBERED_SECONDS
from placewright.serving.reviews import User
from placewright.testing import VirtualTime

from .desk import Desk

RBAC = "rbac.authorization.k8s.io"
TOKENS, ACCESS = "/tokenreviews", "/subjectaccessreviews"


def account(sandbox: Sandbox, name: str, *paths: str) -> str:
    """The token of a ServiceAccount that may get these paths."""
    create, resource = sandbox.writes.create, sandbox.resource
    create(resource("", "v1", "serviceaccounts"), "default", {"metadata": {"name": name}})
    if paths:
        create(
            resource(RBAC, "v1", "clusterroles"), "",
            {"metadata": {"name": name}, "rules": [{"nonResourceURLs": list(paths), "verbs": ["get"]}]},
        )  # fmt: skip
        subject = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
        reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": name}
        binding = {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}
        create(resource(RBAC, "v1", "clusterrolebindings"), "", binding)
    return sandbox.access.new_token("default", name)


@pytest.mark.asyncio(loop_scope="module")
async def test_whoever_may_read_a_path_is_answered(shared: Desk) -> None:
    token = account(shared.stage.sandbox, "reader", "/configz", "/debug/*")
    for path in ("/configz", "/debug/queue", "/debug/cache"):
        reply = await shared.get(path, token)
        assert (reply.status, reply.headers["Content-Type"]) == (200, "application/json"), path


@pytest.mark.asyncio(loop_scope="module")
async def test_others_are_told_who_they_are_and_nothing_else(shared: Desk) -> None:
    token = account(shared.stage.sandbox, "stranger", "/elsewhere")
    for path in ("/configz", "/debug/queue", "/debug/cache"):
        assert await without_content(shared.get(path)) == (403, f'forbidden: User "system:anonymous" cannot get path "{path}"\n')
        reply = await without_content(shared.get(path, token))
        assert reply == (403, f'forbidden: User "system:serviceaccount:default:stranger" cannot get path "{path}"\n')
        assert await without_content(shared.get(path, "nonsense")) == (401, "Unauthorized\n")


async def without_content(asking: Any) -> tuple[int, str]:
    reply = await asking
    return reply.status, reply.text


@pytest.mark.asyncio(loop_scope="module")
async def test_health_asks_nobody_for_a_token(shared: Desk) -> None:
    rule = shared.stage.sandbox.faults.add(Rule(method="POST", path=TOKENS))
    assert (await shared.get("/livez", "nonsense")).text == "ok"
    assert rule.met == 0


@pytest.mark.asyncio(loop_scope="module")
async def test_nothing_but_get_is_answered(shared: Desk) -> None:
    for path in ("/livez", "/configz", "/debug/queue"):
        for method in ("POST", "PUT", "DELETE", "HEAD", "OPTIONS"):
            reply = await shared.get(path, method=method)
            assert (reply.status, reply.headers["Allow"]) == (405, "GET"), (path, method)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("path", ["/", "/nothing", "/configz/", "/debug", "/debug/", "/debug/queue/x", "//livez", "/livez/../configz"])
async def test_other_paths_are_404_for_everybody(path: str, shared: Desk) -> None:
    assert (await shared.get(path)).status in (403, 404)
    if ".." not in path:
        assert (await shared.get(path)).status == 404


# --- the gate by itself ------------------------------------------------------------------------------------------------------------


class Doorway:
    """A gate in front of `/metrics`, and how often it asked."""

    def __init__(self, sandbox: Sandbox, client: ApiClient) -> None:
        self.sandbox = sandbox
        self.clock = VirtualTime(1000.0)
        self.gate = AskingTheApiServer(client, self.clock)
        self.tokens = sandbox.faults.add(Rule(method="POST", path=TOKENS, latency=0.0))
        self.access = sandbox.faults.add(Rule(method="POST", path=ACCESS, latency=0.0))

    async def knock(self, token: str, path: str = "/metrics", audience: Audience = Audience.AUTHORIZED, peer: str = "10.0.0.1") -> int:
        """The status that who asks gets."""
        question = Question(path, authorization=f"Bearer {token}" if token else "", peer=peer)
        try:
            await self.gate.admit(Endpoint(path, nothing, audience), question)
        except RequestRefused as refused:
            return refused.status
        return 200

    @property
    def asked(self) -> tuple[int, int]:
        """How many reviews of tokens, and of rights."""
        return self.tokens.met, self.access.met


async def nothing(_question: Question) -> Answer:
    return Answer(b"")


@pytest.fixture
async def door() -> AsyncIterator[Doorway]:
    async with Sandbox(SandboxOptions()) as sandbox, ApiClient(load_config(str(sandbox.kubeconfig)), timeout=2.0) as client:
        yield Doorway(sandbox, client)


async def test_an_answer_is_good_for_ten_seconds_and_asked_for_once(door: Doorway) -> None:
    token = account(door.sandbox, "reader", "/metrics")
    for _ in range(3):
        assert await door.knock(token) == 200
    assert door.asked == (1, 1)
    door.clock.now += REMEMBERED_SECONDS - 0.1
    assert await door.knock(token) == 200
    assert door.asked == (1, 1)
    door.clock.now += 0.2
    assert await door.knock(token) == 200
    assert door.asked == (2, 2)


async def test_a_right_that_is_taken_away_is_gone_after_ten_seconds(door: Doorway) -> None:
    token = account(door.sandbox, "reader", "/metrics")
    assert await door.knock(token) == 200
    door.sandbox.writes.delete(door.sandbox.resource(RBAC, "v1", "clusterrolebindings"), "", "reader")
    door.clock.now += REMEMBERED_SECONDS + 0.1
    assert await door.knock(token) == 403


async def test_a_refusal_is_remembered_as_long(door: Doorway) -> None:
    token = account(door.sandbox, "stranger")
    for _ in range(3):
        assert (await door.knock(token), await door.knock("nonsense")) == (403, 401)
    assert door.asked == (2, 1)


async def test_a_token_that_is_no_text_is_refused_without_a_question(door: Doorway) -> None:
    """As it comes from a header with bytes that are no UTF-8: JSON cannot carry it, and no token is such."""
    assert [await door.knock("token\udcff"), await door.knock("tok\u00e9n")] == [401, 401]
    assert door.asked == (0, 0)


async def test_rights_are_asked_for_each_path_and_each_person(door: Doorway) -> None:
    reader, other = account(door.sandbox, "reader", "/metrics"), account(door.sandbox, "other", "/configz")
    assert [await door.knock(reader), await door.knock(other)] == [200, 403]
    assert [await door.knock(reader, "/configz"), await door.knock(other, "/configz")] == [403, 200]


async def test_who_brings_no_token_is_anonymous_and_may_be_let_in_by_a_role(door: Doorway) -> None:
    assert await door.knock("") == 403
    account(door.sandbox, "everybody", "/metrics")
    bindings = door.sandbox.resource(RBAC, "v1", "clusterrolebindings")
    group = {"kind": "Group", "name": "system:unauthenticated", "apiGroup": RBAC}
    door.sandbox.writes.modify(bindings, "", "everybody", lambda binding: binding.update(subjects=[group]))
    door.clock.now += REMEMBERED_SECONDS + 0.1
    assert await door.knock("") == 200
    assert door.tokens.met == 0


async def test_while_the_api_server_is_away_only_what_is_remembered_opens(
    door: Doorway, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caplog.handler, "filters", [Repeats()])  # as in the log of an operator
    token = account(door.sandbox, "reader", "/metrics")
    assert await door.knock(token) == 200
    door.sandbox.faults.refuse_connections(3600.0)
    assert await door.knock(token) == 200
    assert await door.knock(token, "/configz") == 500
    assert [await door.knock("another") for _ in range(9)] == [401] * 9
    assert caplog.text.count("the API server does not say whose a token is") == FEW
    assert caplog.text.count("the API server does not say what a user may do") == 1
    door.clock.now += REMEMBERED_SECONDS + 0.1
    assert await door.knock(token) == 401


@pytest.mark.parametrize(
    "answer", [b"", b"[]", b"null", b"{", b'{"status": {"authenticated": "yes"}}', b'{"status": {"authenticated": true}}', b"\xff"]
)
async def test_an_answer_that_is_none_keeps_people_out(door: Doorway, answer: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    async def post(*_: object) -> bytes:
        return answer

    monkeypatch.setattr(door.gate._judgments._judge._client, "post", post)
    assert await door.knock("token") == 401
    assert await door.knock("") in (403, 500)


async def test_a_denial_goes_before_a_permission(door: Doorway, monkeypatch: pytest.MonkeyPatch) -> None:
    async def post(*_: object) -> bytes:
        return b'{"status": {"allowed": true, "denied": true}}'

    monkeypatch.setattr(door.gate._judgments._judge._client, "post", post)
    assert await door.knock("") == 403


async def test_what_is_remembered_is_bounded(door: Doorway, monkeypatch: pytest.MonkeyPatch) -> None:
    async def post(*_: object) -> bytes:
        return b"{}"

    monkeypatch.setattr(door.gate._judgments._judge._client, "post", post)
    for number in range(1500):
        assert await door.knock(f"token-{number}") == 401
    assert len(door.gate._judgments._users) == 1024


async def test_strangers_wait_for_a_turn(door: Doorway, monkeypatch: pytest.MonkeyPatch) -> None:
    under_way, most, free = 0, 0, asyncio.Event()

    async def post(*_: object) -> bytes:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await free.wait()
        under_way -= 1
        return b"{}"

    monkeypatch.setattr(door.gate._judgments._judge._client, "post", post)
    knocking = [asyncio.create_task(door.knock(f"token-{number}")) for number in range(50)]
    for _ in range(5):
        await asyncio.sleep(0)
    free.set()
    assert set(await asyncio.gather(*knocking)) == {401}
    assert most == 8


class Held:
    """The API server's reviews, each of which waits until `free` is set. `asked` has their tokens, in the order of the questions."""

    def __init__(self, door: Doorway, monkeypatch: pytest.MonkeyPatch) -> None:
        self.free = asyncio.Event()
        self.asked: list[str] = []
        self._post = door.gate._judgments._judge._client.post  # type: ignore[attr-defined]
        monkeypatch.setattr(door.gate._judgments._judge._client, "post", self.post)  # type: ignore[attr-defined]

    async def post(self, path: str, body: Any, *more: Any) -> bytes:
        token = body["spec"].get("token", "")
        self.asked.append(token)
        if token.startswith("made-up"):
            await self.free.wait()
            return b"{}"
        answer: bytes = await self._post(path, body, *more)
        return answer


async def turns(number: int = 5) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


async def test_a_token_that_was_good_is_answered_at_once_beside_any_number_of_made_up_ones_from_the_same_address(
    door: Doorway, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = account(door.sandbox, "reader", "/metrics")
    assert await door.knock(token) == 200
    held = Held(door, monkeypatch)
    crowd = [asyncio.create_task(door.knock(f"made-up-{number}")) for number in range(1000)]
    await turns()
    door.clock.now += REMEMBERED_SECONDS + 0.1
    async with asyncio.timeout(DEADLINE):
        assert await door.knock(token) == 200
    held.free.set()
    statuses = await asyncio.gather(*crowd)
    assert (statuses.count(503), statuses.count(401)) == (1000 - MOST_STRANGERS - 8, MOST_STRANGERS + 8)


async def test_a_token_that_is_good_no_more_waits_with_strangers(door: Doorway) -> None:
    lanes = door.gate._judgments.lanes
    lanes.note(b"t", User("ann"))
    async with lanes.for_token(b"t", Question("/metrics", peer="10.0.0.1")):
        assert (len(lanes.strangers._under_way), len(lanes.known._under_way)) == (0, 1)
    lanes.note(b"t", None)
    async with lanes.for_token(b"t", Question("/metrics", peer="10.0.0.1")):
        assert (len(lanes.strangers._under_way), len(lanes.known._under_way)) == (1, 0)


async def test_an_address_with_one_new_token_is_next_beside_a_crowd_of_another(door: Doorway, monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held(door, monkeypatch)
    crowd = [asyncio.create_task(door.knock(f"made-up-{number}")) for number in range(1000)]
    await turns()
    one = asyncio.create_task(door.knock("made-up-elsewhere", peer="10.0.0.2"))
    await turns()
    crowd += [asyncio.create_task(door.knock(f"made-up-{number}")) for number in range(1000, 2000)]
    await turns()
    assert len(held.asked) == 8
    held.free.set()
    assert await one == 401
    await asyncio.gather(*crowd)
    assert held.asked[8] == "made-up-elsewhere"


async def test_the_api_server_is_not_asked_for_a_request_whose_client_is_gone(door: Doorway, monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held(door, monkeypatch)
    crowd = [asyncio.create_task(door.knock(f"made-up-{number}")) for number in range(50)]
    await turns()
    for each in crowd:
        each.cancel()
    await asyncio.gather(*crowd, return_exceptions=True)
    held.free.set()
    assert await door.knock("made-up-last") == 401
    assert held.asked == [*(f"made-up-{number}" for number in range(8)), "made-up-last"]


def test_all_service_accounts_of_a_namespace_are_one_party() -> None:
    parties = [User(f"system:serviceaccount:{name}").party for name in ("a:x", "a:y", "b:x")]
    assert parties[0] == parties[1] != parties[2]
    assert User("a").party != User("system:serviceaccount:a").party != parties[0], "names that only look like an account's"


async def test_known_tokens_are_bounded_and_one_namespace_pushes_out_its_own(door: Doorway) -> None:
    lanes = door.gate._judgments.lanes
    lanes.note(b"scraper", User("prometheus"))
    for number in range(3000):
        lanes.note(str(number).encode(), User(f"system:serviceaccount:hostile:{number}"))
    assert len(lanes._tokens) == 1024
    assert b"scraper" in lanes._tokens


@pytest.mark.parametrize("peer", ["10.0.0.1", "::ffff:10.0.0.1", "fe80::1%eth0", "", "localhost", "2001:db8::1"])
async def test_debug_pages_are_not_for_other_machines_whatever_they_may(door: Doorway, peer: str) -> None:
    token = account(door.sandbox, "reader", "/debug/*")
    assert await door.knock(token, "/debug/queue", Audience.LOOPBACK, peer) == 403
    assert await door.knock(token, "/debug/queue", Audience.LOOPBACK, "127.0.0.1") == 200
    assert not is_loopback(peer)


@pytest.mark.parametrize("peer", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"])
def test_loopback_has_several_spellings(peer: str) -> None:
    assert is_loopback(peer)
