"""Each field that a tenant may write has a bound: the walk over all decoded kinds finds none without, and each bound is seen to hold."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import pytest

import placewright
from placewright.api.decode import DecodeError, convert
from placewright.api.objectbounds import FieldBound, bounded, field_bounds
from placewright.api.objects import KubeObject, Node, ObjectMeta, Pod
from placewright.api.podextent import CLAIM_SELECTORS, CLAIM_VALUES, EXTENT_LIMITS, ExtentLimit
from placewright.api.pods import PodInfo
from placewright.api.profile import SchedulingProfile
from placewright.api.quantity import QuantityError, nano
from placewright.api.turnedaway import FailedPod
from placewright.api.writers import FIELD_BYTES, Characters, Writer, counted
from placewright.kube.discovery import REFLECTED
from placewright.kube.fullobjects import WholeNode
from placewright.leadership.leaseobject import Lease
from placewright.leadership.peering import Peering

from .fieldwalk import TEXT, Leaf, leaves, names_of

#: All kinds that reflectors and Kopf's handlers decode.
KINDS: tuple[type[Any], ...] = tuple(
    dict.fromkeys((*(row.kind for row in REFLECTED), Pod, Node, SchedulingProfile, FailedPod, WholeNode, Lease, Peering))
)
LIMITS = {limit.counted: limit for limit in EXTENT_LIMITS}


class Unbounded(Exception):
    """A field that a tenant may write, and that has no bound, or one that does not hold."""


# --- the bound of a field ----------------------------------------------------------------------------------------------------------


def bound_of(kind: type[Any], leaf: Leaf) -> Any:
    """The bound that is declared for a field; raise `Unbounded` where there is none."""
    if leaf.writer is None:
        raise Unbounded(f"{leaf}: name its writer beside the field at the top level")
    if leaf.writer is not Writer.TENANT:
        return None
    lengths = [each for each in leaf.declared if isinstance(each, msgspec.Meta) and each.max_length is not None]
    if lengths and leaf.shape == TEXT:
        return lengths[0]
    if leaf.shape == TEXT and (characters := [each for each in leaf.declared if isinstance(each, Characters)]):
        return characters[0]
    if names_of(leaf.section):
        limits = [LIMITS[name] for name in (*names_of(leaf.declared), *names_of(leaf.section)) if name in LIMITS]
        if limits:
            return tuple(limits)
    place = ".".join(name for name, _ in leaf.path[:2])
    for bound in field_bounds(kind):
        if bound.path == place:
            return bound
    raise Unbounded(f"{leaf}: a tenant may write it, and nothing bounds it")


# --- an object just over it: a maker for each kind of bound ------------------------------------------------------------------------


def over_length(kind: type[Any], leaf: Leaf, bound: msgspec.Meta) -> None:
    """A text that identifies an object: one character more is no object."""
    assert bound.max_length is not None
    convert(leaf.body(bound.max_length), kind)
    with pytest.raises(DecodeError, match=f"length <= {bound.max_length}"):
        convert(leaf.body(bound.max_length + 1), kind)


def over_characters(kind: type[Any], leaf: Leaf, bound: Characters) -> None:
    """An amount: one with more digits is none."""
    assert nano("1" * bound.most) > 0
    with pytest.raises(QuantityError):
        nano("1" * (bound.most + 1))


def over_count(kind: type[Any], leaf: Leaf, limits: tuple[ExtentLimit, ...]) -> None:
    """A part of a pod: it is refused by the first limit that counts the part, just over that limit and not at it."""
    for limit in limits:
        most = limit.most if limit.counted != "nbytes" else fewer_than(limit.most, lambda number: extent(leaf, number)[1])
        refused, _ = extent(leaf, most + 1)
        if refused.startswith(f"{limit.field}: ") and limit.things in refused:
            assert extent(leaf, most)[0] == ""
            return
    raise Unbounded(f"{leaf}: no limit of {[limit.counted for limit in limits]} refuses a pod that has more of it")


def extent(leaf: Leaf, number: int) -> tuple[str, int]:
    """(why a pod with so much of it is refused, bytes of the pod)."""
    info = PodInfo(convert(leaf.body(number), Pod))
    return info.extent.excess, sum(len(msgspec.json.encode(part)) for part in (info.pod.metadata, info.pod.spec))


def over_bytes(kind: type[Any], leaf: Leaf, bound: FieldBound) -> None:
    """A field of another object: it is left out, with a sentence, just over its bytes and not at them."""

    def field(item: Any) -> Any:
        return getattr(getattr(item, bound.section), bound.field)

    def nbytes(number: int) -> int:
        return len(msgspec.json.encode(field(convert(leaf.body(number), kind))))

    most = fewer_than(bound.most, nbytes)
    at, over = convert(leaf.body(most), kind), convert(leaf.body(most + 1), kind)
    assert bounded(at) is at
    within = bounded(over)
    told = rf"{re.escape(bound.path)}: \d+ bytes of JSON; this scheduler reads at most {bound.most}"
    if not re.fullmatch(told, within.metadata.excess) or field(within) == field(over):
        raise Unbounded(f"{leaf}: it is kept beyond its bound of {bound.most} bytes")
    assert bounded(within) is within


def fewer_than(most: int, nbytes: Callable[[int], int]) -> int:
    """The largest number with at most so many bytes, where each one more takes as many."""
    one, three = nbytes(1), nbytes(3)
    return 1 + (most - one) // ((three - one) // 2)


#: By the type of a bound. A bound without a maker is none.
MAKERS: dict[type, Callable[[type[Any], Leaf, Any], None]] = {
    msgspec.Meta: over_length,
    Characters: over_characters,
    tuple: over_count,
    FieldBound: over_bytes,
}


def hold(kind: type[Any]) -> int:
    """Try the bound of each field of a kind; raise `Unbounded` for the first without. Return how many were tried."""
    tried = 0
    for leaf in leaves(kind):
        bound = bound_of(kind, leaf)
        if bound is None:
            continue
        maker = MAKERS.get(type(bound))
        if maker is None:
            raise Unbounded(f"{leaf}: no maker of an object over {type(bound).__name__}")
        maker(kind, leaf, bound)
        tried += 1
    return tried


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_object_just_over_each_bound_is_refused_or_cut(kind: type[Any]) -> None:
    tried = hold(kind)
    assert tried >= (100 if kind is Pod else 0)


def test_every_kind_that_a_reflector_is_given_is_walked() -> None:
    read = {
        found
        for path in Path(placewright.__file__).parent.rglob("*.py")
        for found in re.findall(r"[^\w.]Source\([^()]*?(?:\([^()]*\))?[^()]*?, (\w+)[,)]", path.read_text())
    }
    assert {"Pod", "Node", "Lease", "Peering", "FailedPod", "WholeNode"} <= read
    assert read <= {kind.__name__ for kind in KINDS}


def test_the_tenants_kinds_are_the_namespaced_ones_that_no_controller_writes() -> None:
    writers = {kind.__name__ for kind in KINDS if any(leaf.writer is Writer.TENANT for leaf in leaves(kind))}
    assert writers == {
        "Pod", "FailedPod", "Service", "ReplicationController", "ReplicaSet", "StatefulSet", "PodDisruptionBudget", "PersistentVolumeClaim",
        "ResourceClaim", "CoschedulingPodGroup", "NativePodGroup", "Workload", "VolcanoPodGroup", "CompositePodGroup",
    }  # fmt: skip


# --- the test is red without a bound -----------------------------------------------------------------------------------------------


class Because(NamedTuple):
    """A declaration that bounds nothing."""

    why: str


class Inner(KubeObject, frozen=True):
    fine: tuple[str, ...] | None = None


class Outer(KubeObject, frozen=True):
    described: Annotated[dict[str, str] | None, msgspec.Meta(description="a map with words beside it, and no bound")] = None


class NoWriter(KubeObject, frozen=True):
    metadata: Annotated[ObjectMeta, Writer.TENANT] = ObjectMeta()
    spec: Inner = Inner()


class NoBound(KubeObject, frozen=True):
    metadata: Annotated[ObjectMeta, Writer.TENANT] = ObjectMeta()
    spec: Annotated[Outer, Writer.TENANT] = Outer()


class NoCount(KubeObject, frozen=True):
    metadata: Annotated[ObjectMeta, Writer.TENANT] = ObjectMeta()
    spec: Annotated[Inner, Writer.TENANT, counted("no such count")] = Inner()


class Bounded(KubeObject, frozen=True):
    metadata: Annotated[ObjectMeta, Writer.TENANT] = ObjectMeta()
    spec: Annotated[Inner, Writer.TENANT] = Inner()


@pytest.mark.parametrize("kind", [NoWriter, NoBound, NoCount])
def test_a_field_without_a_bound_is_red(kind: type[Any]) -> None:
    with pytest.raises(Unbounded, match=r"^spec\."):
        hold(kind)


def test_the_same_field_with_a_bound_is_green() -> None:
    assert hold(Bounded) == sum(leaf.writer is Writer.TENANT for leaf in leaves(Bounded)) > 10


def test_a_bound_without_a_maker_is_red(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(MAKERS, FieldBound)
    with pytest.raises(Unbounded, match="no maker of an object over FieldBound"):
        hold(Bounded)


def test_a_bound_that_is_not_held_is_red(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "bounded", lambda item: item)
    with pytest.raises(Unbounded, match="it is kept beyond its bound"):
        hold(Bounded)


# --- and people find it ------------------------------------------------------------------------------------------------------------


def test_the_table_of_limits_has_each_bound_and_names_each_kind() -> None:
    page = (Path(__file__).parents[2] / "docs" / "security-reference.md").read_text()
    section = page.partition("## What other objects may hold\n")[2].partition("\n#")[0]
    written = dict(re.findall(r"^\| (.+?) \| ([\d,]+) bytes of JSON \|$", section, re.MULTILINE))
    own = {bound.path: bound.most for kind in KINDS for bound in field_bounds(kind) if bound.most != FIELD_BYTES}
    general = f"{FIELD_BYTES:,}"
    assert {path: f"{most:,}" for path, most in own.items()} == {path: most for path, most in written.items() if most != general}
    assert general in written.values()
    for kind in KINDS:
        if field_bounds(kind) and kind is not FailedPod:
            assert kind.__name__.removeprefix("Coscheduling").removeprefix("Native").removeprefix("Volcano") in section


@pytest.mark.parametrize("limit", [CLAIM_SELECTORS, CLAIM_VALUES], ids=lambda limit: limit.things)
def test_the_limits_of_claims_are_written_beside_those_of_pods(limit: ExtentLimit) -> None:
    page = (Path(__file__).parents[2] / "docs" / "security-reference.md").read_text()
    assert f"| {limit.field} | {limit.most:,} {limit.things} |" in page
