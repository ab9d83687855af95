"""Assertions on a `World` that print what was expected, what is there, and why.

They raise plain `AssertionError`, so they work under any test runner.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NoReturn

from placewright.queue.queued import SubQueue
from placewright.scheduler.attempts import Attempt
from placewright.scheduler.cycle import ScheduleResult
from placewright.testing.objectmaker import DEFAULT_NAMESPACE
from placewright.testing.world import World

#: So many nodes are told of; the message of a pod's event counts all of them.
_MOST_NODES: Final = 20
_WAITING: Final = frozenset({SubQueue.ACTIVE, SubQueue.BACKOFF, SubQueue.UNSCHEDULABLE})


def assert_placed(world: World, name: str, *, on: str | None = None) -> None:
    """Assert that a pod counts on a node, be it bound or only assumed.

    Args:
        world: the pod's world.
        name: the pod's, or its `namespace/name`.
        on: the node; None: any.

    Raises:
        AssertionError: with the pod's node and the scores of the best nodes, or with why it is on none.
    """
    found = world.node_of(name)
    if found is None or on not in (None, found):
        _fail(world, name, f"on {'a node' if on is None else f'node {on}'}")


def assert_bound(world: World, name: str, *, on: str | None = None) -> None:
    """Assert that a pod's binding cycle has ended well.

    Args:
        world: the pod's world.
        name: the pod's, or its `namespace/name`.
        on: the node; None: any.

    Raises:
        AssertionError: as `assert_placed`; with the failure of the last attempt, if its binding cycle failed.
    """
    found, attempt = world.node_of(name), world.last_attempt(name)
    # A pod counts on its node from the moment it is assumed: the node alone does not say that the binding cycle has ended.
    ended_well = attempt is not None and attempt.failure is None
    if found is None or not ended_well or on not in (None, found):
        _fail(world, name, f"bound to {'a node' if on is None else f'node {on}'}")


def assert_waiting(world: World, name: str, *, because: str = "", plugin: str = "") -> None:
    """Assert that a pod was tried, has no node, and waits to be tried again.

    Args:
        world: the pod's world.
        name: the pod's, or its `namespace/name`.
        because: a part of the message in its event and condition.
        plugin: the name of a plugin that rejected it.

    Raises:
        AssertionError: with where the pod is, its message, and each node's reason.
    """
    expected = " ".join(filter(None, ("waiting", f"because of {because!r}" if because else "", f"rejected by {plugin}" if plugin else "")))
    attempt = world.last_attempt(name)
    failure = None if attempt is None else attempt.failure
    if world.place(name) not in _WAITING or failure is None or because not in failure.message:
        _fail(world, name, expected)
    # A plugin that answered Pending keeps the pod waiting as a plugin that rejected it does.
    if plugin and plugin not in failure.unschedulable_plugins | failure.pending_plugins:
        _fail(world, name, expected)


def assert_gated(world: World, name: str) -> None:
    """Assert that a PreEnqueue plugin keeps a pod out of the queue.

    Args:
        world: the pod's world.
        name: the pod's, or its `namespace/name`.

    Raises:
        AssertionError: with where the pod is instead.
    """
    if world.place(name) is not SubQueue.GATED:
        _fail(world, name, "gated")


def assert_event(world: World, name: str, reason: str, note: str = "") -> None:
    """Assert that an event with this reason was recorded about a pod, and that its note contains a text.

    Args:
        world: the world that recorded the events.
        name: the pod's, without its namespace.
        reason: the event's whole reason, such as `FailedScheduling`.
        note: a part of the event's text; empty: any text.

    Raises:
        AssertionError: with all events about the pod.

    Example:
        assert_event(world, "web", "FailedScheduling", "Insufficient cpu")
    """
    events = world.events.about(name)
    if not any(event.reason == reason and note in event.note for event in events):
        told = "".join(f"\n  {event.type} {event.reason}: {event.note}" for event in events) or " none"
        raise AssertionError(f"pod {name}: expected an event {reason}{f' with {note!r}' if note else ''}, found{told}")


def assert_evicted(world: World, *names: str) -> None:
    """Assert that exactly these pods were told to leave, in any order.

    Args:
        world: the world that recorded the evictions.
        names: the victims', without their namespaces; none: no pod was told to leave.

    Raises:
        AssertionError: with each victim, the preemptor, and the node.
    """
    if sorted(each.victim for each in world.evictor.evicted) != sorted(names):
        told = "".join(f"\n  {each.victim} on {each.node}, for {each.preemptor}" for each in world.evictor.evicted) or " nobody"
        raise AssertionError(f"expected to be evicted: {', '.join(sorted(names)) or 'nobody'}; found{told}")


def state_of(world: World, name: str) -> str:
    """Describe a pod: where it is, the outcome of its last attempt, and why it is not elsewhere.

    Args:
        world: the pod's world.
        name: the pod's, or its `namespace/name`.

    Returns:
        Lines, the first one fit to follow "found ".
    """
    attempt = world.last_attempt(name)
    return "\n".join([_place(world, name), *(f"  {line}" for line in _reasons(world, name, attempt))])


def _fail(world: World, name: str, expected: str) -> NoReturn:
    key = name if "/" in name else f"{DEFAULT_NAMESPACE}/{name}"
    raise AssertionError(f"pod {key}: expected {expected}, found {state_of(world, name)}")


def _place(world: World, name: str) -> str:
    node, place = world.node_of(name), world.place(name)
    if node is not None:
        return f"on node {node}{', its binding cycle not ended' if place is SubQueue.IN_FLIGHT else ''}"
    if place is None:
        return "neither in the queue nor on a node: was it shown to this world?"
    return f"in the queue: {place.value}"


def _reasons(world: World, name: str, attempt: Attempt | None) -> Iterator[str]:
    if world.place(name) is SubQueue.GATED:
        yield world.gated_by(name)
    if attempt is None:
        yield "no attempt has ended"
        return
    yield f"attempt {attempt.number}: {attempt.result}"
    if attempt.failure is not None:
        yield attempt.failure.message
        rejections = world.rejections(name)
        for node in sorted(rejections)[:_MOST_NODES]:
            yield f"{node}: {rejections[node]}"
        if len(rejections) > _MOST_NODES:
            yield f"and {len(rejections) - _MOST_NODES} more nodes"
    elif attempt.schedule_result is not None:
        yield from _scores(attempt.schedule_result)


def _scores(result: ScheduleResult) -> Iterator[str]:
    """Yield each of the best nodes with its score and the plugins' parts in it, the chosen one first."""
    # The scheduler scores nothing if one node is feasible, so there are no parts to show.
    if not result.parts:
        yield f"{result.node}: not scored, as it was the only feasible node"
        return
    for at, node in enumerate(result.best):
        parts = {plugin: scores[at].product for plugin, scores in result.parts.items()}
        yield f"{node}: score {sum(parts.values())}: {', '.join(f'{plugin} {part}' for plugin, part in parts.items())}"
