"""The profiles in effect, and how a change takes effect.

A change is parsed and checked, an evaluator is built aside, and only then the set is swapped: a reader holds either the old set or the new
one, never a mixture. A change that cannot be used leaves the last good generation in effect.

Two profiles may claim one schedulerName: the older one (creationTimestamp, then name) has it, and the other waits until the older lets go.
The queue has one order, so a profile whose queueSort differs from the others' is refused, too.

A generation with a plugin that did not return is held. Its mark is the condition `PluginHanging` in the profile's status: it outlives the
process, and every replica reads it before it takes a pod of that generation. The next generation does not have it.

Profiles that can be given to one pod with one priority (`spec.pods`) are all Stalled. They stay in effect, and such a pod gets
the older one.

Shadows stand apart: they claim no schedulerName and no order, and are in effect while the profile that they name is.

Use `LiveProfiles` in one thread, or one event loop. A cycle may keep `active` for as long as it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Generic, TypeVar

from placewright.api.bad_input import InputError, in_json
from placewright.api.compatibility import BASELINE, rules_in_force
from placewright.api.profile import LIVE, SHADOW, SchedulingProfile
from placewright.framework.errors import PluginError
from placewright.framework.runtime.resolvedprofile import ExtensionPoint, ResolvedProfile
from placewright.profiles.check import check_same_mode, check_same_name
from placewright.profiles.defaults import Catalogue
from placewright.profiles.podoverlap import rivals
from placewright.profiles.problem import ProfileError
from placewright.profiles.profilestate import PLUGIN_HANGING, ProfileStanding, Reason
from placewright.profiles.resolve import resolve

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Active(Generic[R]):
    """A profile in effect, and the evaluator that was built from it."""

    profile: ResolvedProfile
    evaluator: R


@dataclass(frozen=True, slots=True)
class Swap(Generic[R]):
    """A schedulerName changed hands or generations. `before` is None when it is new, `after` when no profile has it any more."""

    scheduler_name: str
    before: Active[R] | None
    after: Active[R] | None


@dataclass(frozen=True, slots=True)
class Outcome(Generic[R]):
    """The result of a change.

    Attributes:
        standing: standing of the changed profile; None if it was removed or is unknown.
        changed: False for a repeated or late event; nothing was done then.
        swaps: swaps in the order in which the listener was told.
        others: profiles whose standing changed because of this; their status has to be written, too.
    """

    standing: ProfileStanding | None
    changed: bool
    swaps: tuple[Swap[R], ...] = ()
    others: tuple[ProfileStanding, ...] = ()


@dataclass(frozen=True, slots=True)
class _Entry(Generic[R]):
    """A profile object: its newest version, the complaint about that, the last good generation, and the one in effect."""

    seen: SchedulingProfile
    reason: Reason = Reason.ACTIVE
    complaint: str = ""
    good: Active[R] | None = None
    active: Active[R] | None = None
    refusal: tuple[Reason, str] | None = None

    @property
    def age(self) -> tuple[str, str]:
        """Sort key: older profiles first; profiles without a time, which come from files, before all others."""
        meta = self.seen.metadata
        return meta.creation_timestamp or "", meta.name


class LiveProfiles(Generic[R]):
    """The profiles of one scheduler.

        live = LiveProfiles(catalogue, build=lambda resolved: Evaluator(resolved))
        live.apply(default_profile("web"))

    Args:
        catalogue: the plugins that exist here.
        build: makes an evaluator. An error that it raises is the profile's fault, and leaves the last good generation in effect.
        on_swap: told of every swap, after the whole set has been replaced.
        on_shadows: told of the shadows in effect when they change.

    Attributes:
        kubernetes: minor version of the API server, which profiles follow whose `spec.compatibility` is auto.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        build: Callable[[ResolvedProfile], R],
        on_swap: Callable[[Swap[R]], None] = lambda _swap: None,
        on_shadows: Callable[[Mapping[str, Active[R]]], None] = lambda _shadows: None,
    ) -> None:
        self.catalogue = catalogue
        self.kubernetes = BASELINE
        self._build = build
        self._on_swap = on_swap
        self._on_shadows = on_shadows
        self._entries: dict[str, _Entry[R]] = {}
        self._active: Mapping[str, Active[R]] = MappingProxyType({})
        self._shadows: Mapping[str, Active[R]] = MappingProxyType({})

    @property
    def active(self) -> Mapping[str, Active[R]]:
        """The profiles in effect, by schedulerName. The mapping itself never changes: a swap makes a new one."""
        return self._active

    @property
    def shadows(self) -> Mapping[str, Active[R]]:
        """The shadows in effect, by name of the profile, paused ones included. The mapping itself never changes: a swap makes a new one."""
        return self._shadows

    def by_scheduler_name(self, name: str) -> Active[R] | None:
        """Find the profile that places the pods of a schedulerName.

        Returns:
            The profile; None for pods that are not ours.
        """
        return self._active.get(name)

    def standings(self) -> tuple[ProfileStanding, ...]:
        """List the standing of every known profile."""
        return tuple(_standing(entry) for entry in self._entries.values())

    def standing(self, name: str) -> ProfileStanding | None:
        """Return the standing of a profile by its name; None if no such profile is known."""
        entry = self._entries.get(name)
        return None if entry is None else _standing(entry)

    def apply(self, profile: SchedulingProfile) -> Outcome[R]:
        """Take a new or changed profile. An error in the profile is never raised; it becomes the standing's reason and message.

        An event that repeats a known version, or is older, changes nothing. An object of the same name with another uid replaces the first
        one, as if that had been removed.
        """
        entry = self._entries.get(profile.metadata.name)
        # An object of the same name with another uid is another profile: it inherits nothing, and its generations begin at 1 again.
        if entry is not None and entry.seen.metadata.uid != profile.metadata.uid:
            entry = None
        if entry is not None and _is_old_news(profile, entry.seen) and not _is_held_now(profile, entry):
            return Outcome(_standing(entry), changed=False)
        entries = dict(self._entries)
        entries[profile.metadata.name] = self._judge(profile, entry)
        return self._swap_to(entries, profile.metadata.name)

    def restore(self, earlier: SchedulingProfile) -> Outcome[R]:
        """Put an earlier generation of a profile in effect. Its newest generation is refused, and it has no good one yet.

        The earlier generation may come from the replica that led before. Nothing changes when it is not good either, or not earlier.
        """
        name = earlier.metadata.name
        entry = self._entries.get(name)
        if entry is not None and (
            entry.good is not None
            or entry.seen.metadata.uid != earlier.metadata.uid
            or entry.seen.metadata.generation <= earlier.metadata.generation
        ):
            return Outcome(_standing(entry), changed=False)
        judged = self._judge(earlier, None)
        if judged.good is None:
            return Outcome(None if entry is None else _standing(entry), changed=False)
        return self._swap_to({**self._entries, name: judged if entry is None else replace(entry, good=judged.good)}, name)

    def remove(self, name: str, uid: str | None = None) -> Outcome[R]:
        """Forget a profile. Its pods wait until another profile claims their schedulerName."""
        entry = self._entries.get(name)
        if entry is None or uid not in (None, entry.seen.metadata.uid):
            return Outcome(None, changed=False)
        return self._swap_to({key: value for key, value in self._entries.items() if key != name}, name)

    def follow(self, kubernetes: int) -> Outcome[R]:
        """Take another version of the API server. Profiles whose rules it changes are built anew, and swapped.

        Args:
            kubernetes: minor version of Kubernetes 1.
        """
        self.kubernetes = kubernetes
        entries = dict(self._entries)
        for name, entry in self._entries.items():
            if entry.good is None:
                continue
            settings = entry.good.profile.settings
            rules = rules_in_force(settings.compatibility, settings.feature_gates, kubernetes)
            if rules != entry.good.profile.rules:
                entries[name] = self._built(entry, replace(entry.good.profile, rules=rules))
        return self._swap_to(entries, "")

    def _judge(self, profile: SchedulingProfile, known: _Entry[R] | None) -> _Entry[R]:
        """Check the profile and build its evaluator. A failure keeps the last good generation."""
        fresh: _Entry[R] = known or _Entry(profile)
        entry = replace(fresh, seen=profile, reason=Reason.ACTIVE, complaint="")
        # Before an evaluator is built: constructors are the plugins' own code, and the one that hung may hang there, too.
        if held := held_because(profile):
            return replace(entry, reason=Reason.PLUGIN_HANGING, complaint=held, good=None, active=None)
        try:
            resolved = resolve(profile, self.catalogue, self.kubernetes)
            _refuse_another_place(resolved, fresh.good)
        except ProfileError as error:
            return replace(entry, reason=Reason.INVALID_PROFILE, complaint="; ".join(str(error).splitlines()))
        return self._built(entry, resolved)

    def _built(self, entry: _Entry[R], resolved: ResolvedProfile) -> _Entry[R]:
        """Build the evaluator. A failure is the entry's complaint, and its last good generation stays."""
        try:
            evaluator = self._build(resolved)
        except InputError as error:
            return replace(entry, reason=Reason.INVALID_PROFILE, complaint=str(error))
        except PluginError as error:
            return replace(entry, reason=Reason.BUILD_FAILED, complaint=str(error))
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - a plugin's constructor is third-party code, and must not stop the scheduler
            return replace(entry, reason=Reason.BUILD_FAILED, complaint=f"{type(error).__name__}: {error}")
        return replace(entry, good=Active(resolved, evaluator))

    def _swap_to(self, entries: dict[str, _Entry[R]], changed: str) -> Outcome[R]:
        stood = {name: _standing(entry) for name, entry in self._entries.items()}
        before = self._active
        self._entries = _assign(entries)
        held = (entry.active for entry in self._entries.values())
        in_effect = [active for active in held if active is not None]
        # New mappings instead of changed ones: a cycle that took hold of the old set ends under it (decision 0002).
        self._active = MappingProxyType({each.profile.scheduler_name: each for each in in_effect if each.profile.shadows is None})
        shadowed = self._shadows
        self._shadows = MappingProxyType({each.profile.name: each for each in in_effect if each.profile.shadows is not None})
        swaps = _swaps(before, self._active)
        for swap in swaps:
            self._on_swap(swap)
        if self._shadows != shadowed:
            self._on_shadows(self._shadows)
        stands = {name: _standing(entry) for name, entry in self._entries.items()}
        others = tuple(standing for name, standing in stands.items() if name != changed and standing != stood.get(name))
        return Outcome(stands.get(changed), changed=True, swaps=swaps, others=others)


def _refuse_another_place(profile: ResolvedProfile, good: Active[R] | None) -> None:
    """Refuse another schedulerName or mode, as the API server's rules do from Kubernetes 1.25 on."""
    if good is None:
        return
    modes = (SHADOW if each.shadows is not None else LIVE for each in (profile, good.profile))
    name = good.profile.scheduler_name if profile.shadows is not None else profile.scheduler_name  # a shadow claims none
    if problems := [*check_same_name(name, good.profile.scheduler_name), *check_same_mode(*modes)]:
        raise ProfileError(problems)


def _is_old_news(profile: SchedulingProfile, seen: SchedulingProfile) -> bool:
    if profile.metadata.generation != seen.metadata.generation:
        return profile.metadata.generation < seen.metadata.generation
    # Profiles from files all have generation 0, so their specs tell two versions apart.
    return profile.spec == seen.spec


def _is_held_now(profile: SchedulingProfile, entry: _Entry[R]) -> bool:
    """Return whether the known generation has been marked since, because one of its plugins hung in some replica."""
    same = profile.metadata.generation == entry.seen.metadata.generation
    return same and entry.reason is not Reason.PLUGIN_HANGING and bool(held_because(profile))


def _assign(entries: Mapping[str, _Entry[R]]) -> dict[str, _Entry[R]]:
    """Decide which profile has which schedulerName: from the oldest on, its last good generation, else the one that it already has."""
    assigned = dict(entries)
    taken: dict[str, str] = {}
    # By age and not by arrival: two replicas that see the same objects come to the same answer. Shadows follow what they shadow.
    for name, entry in sorted(entries.items(), key=lambda item: (_is_shadow(item[1]), item[1].age)):
        if _is_shadow(entry):
            assigned[name] = _beside(entry, assigned)
            continue
        others = [other.active for key, other in assigned.items() if key != name and other.active is not None and not _is_shadow(other)]
        assigned[name] = chosen = _choose(entry, taken, others)
        if chosen.active is not None:
            taken[chosen.active.profile.scheduler_name] = name
    return assigned | _selecting_twice(assigned)


def _selecting_twice(entries: Mapping[str, _Entry[R]]) -> dict[str, _Entry[R]]:
    """Return the profiles in effect that select pods of an older one of the same priority, each with that complaint.

    An older profile has worked, and stays Ready: one team cannot degrade another's. The newest spec counts, because that is the one that
    the API server's admission reads.
    """
    giving = {name: pods for name, entry in entries.items() if entry.active is not None and (pods := entry.seen.spec.pods) is not None}
    if len(giving) < 2:
        return {}
    refused = {}
    for name, others in rivals(giving).items():
        entry, priority = entries[name], giving[name].priority or 0
        older = sorted((each for each in others if entries[each].age < entry.age), key=lambda each: entries[each].age)
        message = (
            f"spec.pods.priority: found {priority}, with which profiles {in_json(name)} and {', '.join(map(in_json, older))} can "
            f"select one pod, and it is given {in_json(next(iter(older), name))}, the oldest; allowed another priority, or selectors that "
            "exclude each other"
        )
        if older and entry.refusal is None:
            refused[name] = replace(entry, refusal=(Reason.PODS_SELECTED_TWICE, message))
    return refused


def _is_shadow(entry: _Entry[R]) -> bool:
    return entry.good is not None and entry.good.profile.shadows is not None


def _beside(entry: _Entry[R], others: Mapping[str, _Entry[R]]) -> _Entry[R]:
    """Put a shadow in effect if the profile that it names is in effect and places pods."""
    assert entry.good is not None
    wanted = entry.good.profile.shadows or ""
    found = others.get(wanted)
    if found is None or (found.active is None and not _is_shadow(found)):
        what = "which names no profile" if found is None else "a profile without a generation in effect"
        refusal = f"spec.shadows: found {in_json(wanted)}, {what}; allowed the name of a live profile"
    elif _is_shadow(found):
        refusal = f"spec.shadows: found {in_json(wanted)}, which is a shadow itself; allowed the name of a live profile"
    else:
        return replace(entry, active=entry.good, refusal=None)
    return replace(entry, active=None, refusal=(Reason.NOTHING_TO_SHADOW, refusal))


def _choose(entry: _Entry[R], taken: Mapping[str, str], others: list[Active[R]]) -> _Entry[R]:
    """Choose the generation of one profile that is in effect, after older profiles were served.

    The refusal is about its last good generation.
    """
    refusal = None
    # A profile that moves to a taken name stays where it was: its pods go on being placed.
    for candidate in (entry.good, entry.active):
        if candidate is None:
            continue
        refused = _refuse(candidate.profile, taken, others)
        if refused is None:
            return replace(entry, active=candidate, refusal=refusal)
        refusal = refusal or refused
    return replace(entry, active=None, refusal=refusal)


def _refuse(profile: ResolvedProfile, taken: Mapping[str, str], others: list[Active[R]]) -> tuple[Reason, str] | None:
    holder = taken.get(profile.scheduler_name)
    if holder is not None:
        found = f"found {in_json(profile.scheduler_name)}, which the older profile {in_json(holder)} has"
        message = f"spec.schedulerName: {found}; allowed a name of its own"
        return Reason.SCHEDULER_NAME_TAKEN, message
    for other in others:
        if _queue_sort(other.profile) != _queue_sort(profile):
            allowed = f"the queueSort plugin and arguments of profile {other.profile.name!r}: the queue has one order"
            return Reason.QUEUE_SORT_DIFFERS, f"spec.plugins.queueSort: found {in_json(_queue_sort(profile)[0])}; allowed {allowed}"
    return None


def _queue_sort(profile: ResolvedProfile) -> tuple[str, object]:
    name = profile.at(ExtensionPoint.QUEUE_SORT)[0]
    # The arguments, too: they may turn the order round.
    return name, profile.args.get(name)


def _swaps(before: Mapping[str, Active[R]], after: Mapping[str, Active[R]]) -> tuple[Swap[R], ...]:
    names = dict.fromkeys([*before, *after])
    return tuple(Swap(name, before.get(name), after.get(name)) for name in names if before.get(name) is not after.get(name))


def _standing(entry: _Entry[R]) -> ProfileStanding:
    meta, active = entry.seen.metadata, entry.active
    reason, message = entry.reason, entry.complaint
    if not reason.stalls and entry.refusal is not None:
        reason, message = entry.refusal
    if reason is Reason.ACTIVE:
        reason = Reason.PAUSED if entry.seen.spec.paused else Reason.ACTIVE
        message = _does(entry.seen)
        later = [] if active is None else sorted(rule for rule in active.profile.rules if rule.since > BASELINE)
        if later:
            levels = f"1.{BASELINE}..1.{max(rule.since for rule in later)}"
            message += (
                f", by later rules of kube-scheduler: {', '.join(later)}; `placewright diff --compatibility {levels}` shows their effect"
            )
    elif reason is not Reason.PLUGIN_HANGING:
        message += f"; {_still(active)}"
    generation = None if active is None else active.profile.generation
    claimed = "" if entry.seen.spec.is_shadow else entry.seen.spec.scheduler_name
    return ProfileStanding(meta.name, claimed, meta.generation, generation, reason, message)


def _does(profile: SchedulingProfile) -> str:
    """Return the effect of a profile in effect, as a clause for its status."""
    spec = profile.spec
    if spec.is_shadow:
        return (
            "nothing is decided: spec.paused is true"
            if spec.paused
            else (f"generation {profile.metadata.generation} decides the pods of profile {spec.shadows!r}, too, and binds none")
        )
    if spec.paused:
        return "no new pods are taken: spec.paused is true"
    return f"generation {profile.metadata.generation} places the pods of schedulerName {spec.scheduler_name!r}"


def _still(active: Active[R] | None) -> str:
    if active is None:
        return "no generation of this profile is in effect"
    if active.profile.shadows is not None:
        return f"generation {active.profile.generation} stays in effect as a shadow of {active.profile.shadows!r}"
    return f"generation {active.profile.generation} stays in effect for schedulerName {active.profile.scheduler_name!r}"


def said_of(plugin: str, point: str, seconds: float) -> str:
    """Write the message of the mark on a generation."""
    return f'{point} plugin "{plugin}" did not return for {seconds:.0f} s; no pods of this profile are taken until its spec changes'


def held_because(profile: SchedulingProfile) -> str:
    """Read the mark on this generation of a profile.

    Returns:
        The mark's message; empty without one.
    """
    for condition in profile.status.conditions or ():
        if (condition.type, condition.status) == (PLUGIN_HANGING, "True"):
            return condition.message if condition.observed_generation == profile.metadata.generation else ""
    return ""
