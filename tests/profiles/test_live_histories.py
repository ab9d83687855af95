"""Whatever comes in whatever order: what is in effect is what a plain model says, and readers never see it half-way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.profiles.live import LiveProfiles, Swap
from profiles.makers import CATALOGUE, a_profile

#: (name, what is done to it): profiles are younger the later they come in the alphabet; b and c want one schedulerName.
STEPS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["good", "bad", "breaks", "again", "remove"])), max_size=30)
SCHEDULER_NAMES = {"a": "x", "b": "y", "c": "y"}


@dataclass
class Known:
    """One profile object, as far as it matters."""

    uid: int
    generation: int = 0
    spec: dict[str, Any] | None = None
    good: int | None = None


class Breaks(Exception):
    """A plugin that cannot be built."""


def build(resolved: ResolvedProfile) -> tuple[str, int]:
    if resolved.weights["ImageLocality"] == 13:
        raise Breaks
    return resolved.name, resolved.generation


def spec_of(name: str, kind: str, generation: int) -> dict[str, Any]:
    weights = {"good": {"ImageLocality": 100 + generation}, "bad": {"Nonsense": 1}, "breaks": {"ImageLocality": 13}}[kind]
    return {"schedulerName": SCHEDULER_NAMES[name], "weights": weights}


@given(STEPS)
def test_the_oldest_profile_with_a_good_generation_has_the_name_and_its_last_good_generation_decides(steps: list[tuple[str, str]]) -> None:
    swaps: list[Swap[tuple[str, int]]] = []
    live = LiveProfiles[tuple[str, int]](CATALOGUE, build, swaps.append)
    known: dict[str, Known] = {}
    told: dict[str, tuple[str, int]] = {}
    for uid, (name, kind) in enumerate(steps):
        held, held_as = live.active, dict(live.active)
        if kind == "remove":
            live.remove(name)
            known.pop(name, None)
        else:
            entry = known.setdefault(name, Known(uid))
            if kind != "again":
                entry.generation += 1
                entry.spec = spec_of(name, kind, entry.generation)
                entry.good = entry.generation if kind == "good" else entry.good
            if entry.spec is None:
                del known[name]
                continue
            metadata = {"uid": str(entry.uid), "generation": entry.generation, "creationTimestamp": f"2026-01-01T00:00:00Z{name}"}
            live.apply(a_profile(entry.spec, name, **metadata))
        assert dict(held) == held_as, "what a cycle took hold of stays as it was"
        expected = {SCHEDULER_NAMES[each]: (each, one.good) for each, one in sorted(known.items(), reverse=True) if one.good is not None}
        assert {key: active.evaluator for key, active in live.active.items()} == expected
        for swap in swaps:
            before = swap.before.evaluator if swap.before else None
            assert told.get(swap.scheduler_name) == before, "listeners hear of every step, in order"
            if swap.after is None:
                del told[swap.scheduler_name]
            else:
                told[swap.scheduler_name] = swap.after.evaluator
        swaps.clear()
        assert told == expected
