"""Faults on demand: slow answers, refused or lost requests, broken watches, forgotten history.

Tests set faults on the Python object. A server in another process takes `POST /sandbox/refuse-connections` (`seconds`, same token).
Only shares of requests are random, and they come from a seeded generator.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import msgspec

from kubesandbox.status import ApiError, bad_request, method_not_allowed, no_such_path
from kubesandbox.storage.store import Store, Watches

_REASONS: Final = {
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


@dataclass(slots=True)
class Rule:
    """The requests that meet a fault, how often, and the fault.

    Attributes:
        method: HTTP method; empty for any.
        path: part of the path; empty for any.
        watch: True for watches only, False for all but watches, None for both.
        times: requests that meet the rule before it is removed; 0 for no end.
        share: chance of each matching request, from 0 to 1.
        latency: seconds that the request waits first.
        code: status of an answer instead of the request's effect; 0 for none.
        retry_after: seconds in the header `Retry-After` of such an answer.
        lose_answer: True to carry the request out and break the connection.
        met: number of requests that met the rule so far.
    """

    method: str = ""
    path: str = ""
    watch: bool | None = None
    times: int = 0
    share: float = 1.0
    latency: float = 0.0
    code: int = 0
    retry_after: int | None = None
    lose_answer: bool = False
    met: int = 0


class Faults:
    """The faults of one server. The server passes a function that closes its port for a time."""

    def __init__(self, store: Store, watches: Watches, refuse: Callable[[float], None], seed: int = 0) -> None:
        self._store = store
        self._watches = watches
        self.refuse_connections = refuse
        self._random = random.Random(seed)
        self._rules: list[Rule] = []
        self._let_go = asyncio.Event()

    @property
    def armed(self) -> bool:
        """True if any rule is set."""
        return bool(self._rules)

    def add(self, rule: Rule) -> Rule:
        """Set a rule, and return it. It is removed after `times` requests. Raises ValueError if a field is out of range."""
        if not 0 <= rule.share <= 1 or rule.latency < 0 or rule.times < 0:
            raise ValueError("share must be within 0 and 1, latency and times 0 or more")
        if rule.code and not 400 <= rule.code <= 599:
            raise ValueError(f"code must be 400 to 599, found {rule.code}")
        self._rules.append(rule)
        return rule

    def clear(self) -> None:
        """Remove every rule."""
        self._rules.clear()

    def release(self) -> None:
        """End the latency of every request that waits now."""
        self._let_go.set()
        self._let_go = asyncio.Event()

    def drop_watches(self, resource: str = "") -> int:
        """Break open watches off: those of a type, given its plural, or all. Return their number."""
        return self._watches.abort_all(resource)

    def cut_watches_after(self, lines: int) -> None:
        """Break every watch that starts from now on after so many lines; 0 ends this."""
        self._watches.cut_after = lines

    def compact(self) -> None:
        """Forget history: watches that resume and lists that continue get 410."""
        self._store.compact()

    async def meet(self, method: str, path: str, query: dict[str, str]) -> Rule | None:
        """Wait for the latency of the first rule that a request meets, and return the rule, if any. Raises ApiError."""
        watching = query.get("watch", "") in ("1", "true")
        for rule in tuple(self._rules):
            if self._applies(rule, method, path, watching):
                return await self._inflict(rule)
        return None

    def command(self, method: str, path: str, body: bytes) -> None:
        """Carry out a request to `/sandbox/...`, whose body is JSON. Raises ApiError 400, 404 and 405."""
        if path != "/sandbox/refuse-connections":
            raise no_such_path()
        if method != "POST":
            raise method_not_allowed()
        try:
            self.refuse_connections(msgspec.json.decode(body, type=dict[str, float]).get("seconds", 1.0))
        except msgspec.MsgspecError as error:
            raise bad_request(f"{path}: {error}") from error

    def _applies(self, rule: Rule, method: str, path: str, watching: bool) -> bool:
        if rule.method and rule.method != method:
            return False
        if rule.path not in path or (rule.watch is not None and rule.watch is not watching):
            return False
        return rule.share >= 1 or self._random.random() < rule.share

    async def _inflict(self, rule: Rule) -> Rule:
        rule.met += 1
        if rule.met == rule.times:
            self._rules.remove(rule)
        if rule.latency:
            with suppress(TimeoutError):
                async with asyncio.timeout(rule.latency):
                    await self._let_go.wait()
        if rule.code:
            reason = _REASONS.get(rule.code, "InternalError")
            raise ApiError(rule.code, reason, f"injected fault: {reason}", retry_after=rule.retry_after)
        return rule
