"""The rules of device allocation, from the plain meaning of the API, on JSON. Shares no code with the allocator; slow, meant to be read.

A world is a dict of lists: nodes, slices, classes, rules, claims (those that exist), all as the API server shows them, plus `meanings`:
what each selector expression asks.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from device_selectors import NoAnswer, amount, attribute

from framework import scalar_model

Body = dict[str, Any]
Key = tuple[str, str, str]
#: For each claim, which device each result names, with the result's request.
Choice = list[list[tuple[str, Key]]]


@dataclass(frozen=True)
class Found:
    """A device that exists in a pool that counts."""

    key: Key
    device: Body
    spec: Body


@dataclass(frozen=True)
class Wish:
    """One alternative of a request."""

    name: str
    body: Body

    @property
    def takes_all(self) -> bool:
        return bool(self.body.get("allocationMode") == "All")

    @property
    def admin(self) -> bool:
        return bool(self.body.get("adminAccess"))


def selector_matches(selector: Body, node: Body) -> bool:
    """A node selector, with the operator In only."""
    labels, name = node["metadata"].get("labels", {}), node["metadata"]["name"]
    for term in selector["nodeSelectorTerms"]:
        fields = all(name in each["values"] for each in term.get("matchFields", ()))
        if fields and all(labels.get(each["key"]) in each["values"] for each in term.get("matchExpressions", ())):
            return True
    return False


def reaches(body: Body, node: Body) -> bool:
    """Whether a slice, or a device of a slice that leaves it to devices, can be used from a node."""
    if body.get("nodeName"):
        return bool(body["nodeName"] == node["metadata"]["name"])
    return bool(body.get("allNodes")) or ("nodeSelector" in body and selector_matches(body["nodeSelector"], node))


def pools(world: Body) -> dict[tuple[str, str], tuple[list[Body], str]]:
    """Slices of the newest generation of each pool, and what is wrong with the pool."""
    grouped: dict[tuple[str, str], list[Body]] = defaultdict(list)
    for each in world["slices"]:
        grouped[each["spec"]["driver"], each["spec"]["pool"]["name"]].append(each)
    result = {}
    for key, slices in grouped.items():
        newest = max(each["spec"]["pool"]["generation"] for each in slices)
        current = [each for each in slices if each["spec"]["pool"]["generation"] == newest]
        names = Counter(device["name"] for each in current for device in each["spec"].get("devices", ()))
        if len(current) != current[0]["spec"]["pool"]["resourceSliceCount"]:
            result[key] = (current, "incomplete")
        else:
            result[key] = (current, "invalid" if max(names.values(), default=0) > 1 else "")
    return result


def devices_of_the_node(world: Body, node: Body | None) -> list[Found]:
    """All devices that count; with a node, those that can be used from it."""
    found = []
    for (driver, pool), (slices, problem) in pools(world).items():
        for each in slices if not problem else ():
            spec = each["spec"]
            own = spec.get("perDeviceNodeSelection")
            within = (one for one in spec.get("devices", ()) if node is None or reaches(one if own else spec, node))
            found += [Found((driver, pool, device["name"]), device, spec) for device in within]
    return found


def selected(world: Body, wish: Body, found: Found) -> bool:
    """Whether class and request select a device. Raises `NoAnswer`."""
    class_ = next(each for each in world["classes"] if each["metadata"]["name"] == wish["deviceClassName"])
    for selector in [*class_["spec"].get("selectors", ()), *wish.get("selectors", ())]:
        if not world["meanings"][selector["cel"]["expression"]].answer(found.device, found.key[0]):
            return False
    return True


def tolerated(world: Body, wish: Body, found: Found) -> bool:
    """Whether the request puts up with all that keeps others away."""
    taints = list(found.device.get("taints", ()))
    for rule in world["rules"]:
        about = rule["spec"].get("deviceSelector")
        wanted = ("driver", "pool", "device")
        if about is not None and all(about.get(field, name) == name for field, name in zip(wanted, found.key, strict=True)):
            taints.append(rule["spec"]["taint"])
    return all(
        taint["effect"] not in ("NoSchedule", "NoExecute") or scalar_model.tolerated(taint, wish.get("tolerations", ())) for taint in taints
    )


def consumption(wish: Body, device: Body) -> dict[str, Fraction] | None:
    """What one share of a device takes of its capacities; None where that may not be asked for."""
    asked = wish.get("capacity", {}).get("requests", {})
    if not set(asked) <= set(device.get("capacity", {})):
        return None
    taken = {}
    for name, capacity in device.get("capacity", {}).items():
        policy, total = capacity.get("requestPolicy", {}), amount(capacity["value"])
        default = amount(policy["default"]) if "default" in policy else total
        want = amount(asked[name]) if name in asked else default
        if "validValues" in policy:
            allowed = [amount(each) for each in policy["validValues"]]
            if not (name not in asked and "default" in policy):
                want = min((each for each in allowed if each >= want), default=Fraction(-1))
        elif "validRange" in policy and name in asked:
            least, step = amount(policy["validRange"]["min"]), amount(policy["validRange"].get("step", "0"))
            want = max(want, least)
            if step and (want - least) % step:
                want += step - (want - least) % step
            if "max" in policy["validRange"] and want > amount(policy["validRange"]["max"]):
                return None
        if want < 0 or want > total:
            return None
        taken[name] = want
    return taken


def in_use(world: Body) -> tuple[set[Key], dict[Key, dict[str, Fraction]]]:
    """Devices that a claim has for itself; and what is taken of devices by shares."""
    owned: set[Key] = set()
    shares: dict[Key, dict[str, Fraction]] = {}
    for claim in world["claims"]:
        for result in claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ()):
            key = (result["driver"], result["pool"], result["device"])
            if result.get("adminAccess"):
                continue
            if "shareID" not in result:
                owned.add(key)
                continue
            taken = shares.setdefault(key, defaultdict(Fraction))
            for name, each in result.get("consumedCapacity", {}).items():
                taken[name] += amount(each)
    return owned, shares


def wishes(request: Body) -> list[Wish]:
    """The alternatives of a request, by preference."""
    if "exactly" in request:
        return [Wish(request["name"], request["exactly"])]
    return [Wish(f"{request['name']}/{sub['name']}", sub) for sub in request["firstAvailable"]]


def broken_rules(world: Body, node: Body, claims: list[Body], choice: Choice) -> list[str]:
    """Rules that these devices for these claims on this node would break."""
    found = {each.key: each for each in devices_of_the_node(world, node)}
    problems = [f"{key} is not there" for chosen in choice for _, key in chosen if key not in found]
    if problems:
        return problems
    by_name = [{wish.name: wish for request in claim["spec"]["devices"]["requests"] for wish in wishes(request)} for claim in claims]
    flat = [(number, by_name[number][name], found[key]) for number, chosen in enumerate(choice) for name, key in chosen]
    for number, (claim, chosen) in enumerate(zip(claims, choice, strict=True)):
        problems += [f"claim {number}: {each}" for each in _claim_problems(world, node, claim, chosen, found)]
    for _, wish, each in flat:
        if not selected(world, wish.body, each):
            problems.append(f"{wish.name} does not select {each.key}")
        if not tolerated(world, wish.body, each):
            problems.append(f"{wish.name} does not tolerate {each.key}")
    return [*problems, *_sharing_problems(world, flat), *_counter_problems(world, flat)]


def _claim_problems(world: Body, node: Body, claim: Body, chosen: list[tuple[str, Key]], found: dict[Key, Found]) -> Iterator[str]:
    if len(chosen) > 32:
        yield "more than 32 results"
    for request in claim["spec"]["devices"]["requests"]:
        used = [wish for wish in wishes(request) if any(name == wish.name for name, _ in chosen)]
        if len(used) != 1:
            yield f"{request['name']} is served by {len(used)} alternatives"
            continue
        keys = {key for name, key in chosen if name == used[0].name}
        count = sum(name == used[0].name for name, _ in chosen)
        wanted = {each.key for each in all_for(world, node, used[0].body)} if used[0].takes_all else None
        if len(keys) != count or (keys != wanted if wanted is not None else count != used[0].body.get("count", 1)):
            yield f"{used[0].name} has {count} devices"
    for constraint in claim["spec"]["devices"].get("constraints", ()):
        about = set(constraint.get("requests", ()))
        members = [found[key] for name, key in chosen if not about or about & {name, name.split("/")[0]}]
        name = constraint.get("matchAttribute") or constraint["distinctAttribute"]
        values = [typed_values(attribute(each.device, each.key[0], name)) for each in members]
        alike = "matchAttribute" in constraint
        holds = set.intersection(*values) if alike and values else sum(map(len, values)) == len(set().union(*values))
        if not all(values) or (values and not holds):
            yield f"{constraint} does not hold"


def typed_values(attribute: Body | None) -> set[tuple[str, str]]:
    """The values of an attribute with their types: one value, or a list of some."""
    return {
        (kind.removesuffix("s"), repr(each))
        for kind, value in (attribute or {}).items()
        for each in (value if isinstance(value, list) else [value])
    }


def all_for(world: Body, node: Body, wish: Body) -> list[Found]:
    """Every device that a request for all devices means."""
    _, shares = in_use(world)
    return [each for each in devices_of_the_node(world, node) if selected(world, wish, each) and _has_room(wish, each, shares)]


def _has_room(wish: Body, found: Found, shares: dict[Key, dict[str, Fraction]]) -> bool:
    taken = consumption(wish, found.device)
    used = shares.get(found.key, {})
    if taken is None:
        return False
    return all(used.get(name, 0) + each <= amount(found.device["capacity"][name]["value"]) for name, each in taken.items())


def _sharing_problems(world: Body, flat: list[tuple[int, Wish, Found]]) -> Iterator[str]:
    owned, shares = in_use(world)
    holders: dict[Key, list[int]] = defaultdict(list)
    taken: dict[Key, Counter[str]] = defaultdict(Counter)
    for number, wish, found in flat:
        key, shared = found.key, found.device.get("allowMultipleAllocations")
        if wish.admin:
            if number in holders[key]:
                yield f"{key} twice for an administrator in one claim"
        elif key in owned or holders[key] or (key in shares and not shared):
            yield f"{key} is in use"
        if not shared:
            holders[key].append(number)
        takes = consumption(wish.body, found.device)
        if takes is None:
            yield f"{wish.name} may not ask for this much of {key}"
        else:
            taken[key].update(takes)
    for key, amounts in taken.items():
        device = next(found.device for _, _, found in flat if found.key == key)
        before = shares.get(key, {})
        several = device.get("allowMultipleAllocations")
        for name, each in amounts.items():
            if several and before.get(name, 0) + each > amount(device["capacity"][name]["value"]):
                yield f"{key} has not as much {name}"


def _counter_problems(world: Body, flat: list[tuple[int, Wish, Found]]) -> Iterator[str]:
    owned, shares = in_use(world)
    for pool, (slices, _) in pools(world).items():
        left = {
            (each["name"], name): amount(counter["value"])
            for one in slices
            for each in one["spec"].get("sharedCounters", ())
            for name, counter in each["counters"].items()
        }
        known = [each for each in devices_of_the_node(world, None) if each.key[:2] == pool]
        drawn = [each.device for each in known if each.key in owned or each.key in shares]
        new, seen = [], set(shares)
        for _, _, found in flat:
            shared = found.device.get("allowMultipleAllocations")
            if found.key[:2] == pool and found.device.get("consumesCounters") and not (shared and found.key in seen):
                new.append(found.device)
                seen.add(found.key)
        for device in [*drawn, *new]:
            for each in device.get("consumesCounters", ()):
                for name, counter in each["counters"].items():
                    left[each["counterSet"], name] -= amount(counter["value"])
        if new and min(left.values()) < 0:
            yield f"counters of {pool} are overdrawn"


def every_choice(world: Body, node: Body, claims: list[Body], limit: int) -> Iterator[Choice] | None:
    """Every choice of devices that serves each request for itself; None for more than `limit`. Raises `NoAnswer`."""
    per_request: list[list[tuple[int, str, tuple[Key, ...]]]] = []
    for number, claim in enumerate(claims):
        requests = claim["spec"]["devices"]["requests"]
        per_request += [[(number, wish.name, keys) for wish in wishes(each) for keys in _ways(world, node, wish)] for each in requests]
    total = 1
    for ways in per_request:
        total *= len(ways)
    if total > limit:
        return None
    return (_as_choice(len(claims), combined) for combined in itertools.product(*per_request))


def _ways(world: Body, node: Body, wish: Wish) -> Iterable[tuple[Key, ...]]:
    owned, _ = in_use(world)
    if wish.takes_all:
        keys = [each.key for each in all_for(world, node, wish.body)]
        return [tuple(keys)] if keys else []
    usable = [
        each.key
        for each in devices_of_the_node(world, node)
        if (wish.admin or each.key not in owned) and selected(world, wish.body, each) and tolerated(world, wish.body, each)
    ]
    return itertools.combinations(usable, wish.body.get("count", 1))


def _as_choice(claims: int, combined: Iterable[tuple[int, str, tuple[Key, ...]]]) -> Choice:
    choice: Choice = [[] for _ in range(claims)]
    for number, name, keys in combined:
        choice[number] += [(name, key) for key in keys]
    return choice


__all__ = ["Choice", "NoAnswer", "broken_rules", "devices_of_the_node", "every_choice", "selected", "wishes"]
