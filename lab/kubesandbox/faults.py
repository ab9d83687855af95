"""Faults on demand: slow answers, refused or lost requests, broken watches, forgotten history.

Tests set faults on the Python object. A server in another process is asked by `POST /sandbox/refuse-connections` (`seconds`, same token).
Nothing is random
but shares, and those come from a seeded generator.
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
        retry_after: seconds, with `code`.
        lose_answer: carry the request out, and break the connection.
        met: requests so far.
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


@dataclass(frozen=True, slots=True)
class InjectedFault:
    """The fate of one request."""

    refusal: ApiError | None = None
    lose_answer: bool = False


class Faults:
    """The faults of one server, which passes in the functions that break watches, compact and refuse connections."""

    def __init__(
        self,
        *,
        drop_watches: Callable[[str], int],
        compact: Callable[[], None],
        refuse: Callable[[float], None],
        cut_watches: Callable[[int], None],
        seed: int = 0,
    ) -> None:
        self._drop_watches = drop_watches
        self._compact = compact
        self._refuse = refuse
        self._cut_watches = cut_watches
        self._random = random.Random(seed)
        self._rules: list[Rule] = []
        self._let_go = asyncio.Event()

    @property
    def armed(self) -> bool:
        """Whether any rule is set."""
        return bool(self._rules)

    @property
    def rules(self) -> list[Rule]:
        """The rules that are still in force, with how often each was met."""
        return list(self._rules)

    def add(self, rule: Rule) -> Rule:
        """Set a rule. It is removed after `times` requests.

        Args:
            rule: the rule.

        Returns:
            The rule.

        Raises:
            ValueError: a field is out of range.
        """
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
        """Break open watches off.

        Args:
            resource: plural of a type; empty for all.

        Returns:
            The number of watches.
        """
        return self._drop_watches(resource)

    def cut_watches_after(self, lines: int) -> None:
        """Break every watch that starts from now on after so many lines.

        Args:
            lines: 0 ends this.
        """
        self._cut_watches(lines)

    def compact(self) -> None:
        """Forget history: watches that resume and lists that continue get 410."""
        self._compact()

    def refuse_connections(self, seconds: float) -> None:
        """Close every connection and the listening socket, for a time.

        Args:
            seconds: until it opens again.
        """
        self._refuse(seconds)

    async def meet(self, method: str, path: str, query: dict[str, str]) -> InjectedFault | None:
        """Wait for a request's latency, and decide its fate.

        Args:
            method: HTTP method.
            path: of the request.
            query: of the request.

        Returns:
            The fate; None when no rule matches.
        """
        watching = query.get("watch", "") in ("1", "true")
        for rule in tuple(self._rules):
            if self._applies(rule, method, path, watching):
                return await self._inflict(rule)
        return None

    def command(self, method: str, path: str, body: bytes) -> None:
        """Carry out a request to `/sandbox/...`.

        Args:
            method: HTTP method.
            path: of the request.
            body: JSON text.

        Raises:
            ApiError: 400, 404 or 405.
        """
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

    async def _inflict(self, rule: Rule) -> InjectedFault:
        rule.met += 1
        if rule.met == rule.times:
            self._rules.remove(rule)
        if rule.latency:
            with suppress(TimeoutError):
                async with asyncio.timeout(rule.latency):
                    await self._let_go.wait()
        refusal = None
        if rule.code:
            reason = _REASONS.get(rule.code, "InternalError")
            refusal = ApiError(rule.code, reason, f"injected fault: {reason}", retry_after=rule.retry_after)
        return InjectedFault(refusal, rule.lose_answer)
