"""Counts the waiting pods that no profile takes, by the operator's rule; the operator need not run for that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from placewright.api.objects import Pod
from placewright.api.profile import SHADOW
from placewright.cli.profiles.namedprofiles import active_generation, condition
from placewright.kube.client import ApiClient
from placewright.kube.errors import RequestError
from placewright.kube.history import HistoryStore
from placewright.kube.listonce import list_once
from placewright.kube.listwatch import Wire
from placewright.kube.profileapi import Object
from placewright.kube.reflector import Source
from placewright.profiles.profilestate import PLUGIN_HANGING
from placewright.profiles.unclaimed import ProfileNames, Unclaimed, Why, looked_at_by_others, placed_by_others

_PODS: Final = "/api/v1/pods"
_WAITING: Final = "spec.nodeName=,status.phase!=Succeeded,status.phase!=Failed"
#: Pods on nodes that are read to find out which scheduler places pods of a name.
_SAMPLE: Final = 500


async def unclaimed_pods(client: ApiClient, profiles: Sequence[Object], history: HistoryStore) -> list[tuple[Unclaimed, int]]:
    """Count the waiting pods that no profile takes.

    Returns:
        (the schedulerName and the reason, number of pods).

    Raises:
        RequestError: pods may not be listed, or the server did not answer.
    """
    listed = await list_once(client, Source(_PODS, Pod, field_selector=_WAITING))
    by_name: dict[str, list[Pod]] = {}
    for pod in listed.items:
        by_name.setdefault(pod.spec.scheduler_name, []).append(pod)
    live, refused = _claims(profiles)
    deleted: Mapping[str, str] = {}
    if by_name.keys() - live:
        deleted = await _deleted(history)
    names = ProfileNames(live, refused, deleted, _held(profiles))
    found = ((names.judge(name), pods) for name, pods in sorted(by_name.items()))
    return [(one, len(pods)) for one, pods in found if one is not None and not await _is_others(client, one, pods)]


def _claims(profiles: Iterable[Object]) -> tuple[set[str], dict[str, str]]:
    """Return the schedulerNames that are in effect or not judged yet, and the schedulerNames of refused profiles."""
    live: set[str] = set()
    refused: dict[str, str] = {}
    for profile in profiles:
        spec = profile.get("spec") or {}
        name = spec.get("schedulerName")
        if spec.get("mode") == SHADOW or not isinstance(name, str):
            continue
        if condition(profile, "Stalled").get("status") == "True" and not active_generation(profile):
            refused[name] = str(profile["metadata"]["name"])
        else:
            live.add(name)
    return live, refused


def _held(profiles: Iterable[Object]) -> dict[str, str]:
    """Return the message about each profile with a plugin that did not return."""
    found = {str(profile["metadata"]["name"]): condition(profile, PLUGIN_HANGING) for profile in profiles}
    return {name: str(each.get("message")) for name, each in found.items() if each.get("status") == "True"}


async def _deleted(history: HistoryStore) -> Mapping[str, str]:
    from placewright.engine.unclaimedpods import remembered_by  # noqa: PLC0415 - it brings Kopf along, for pods of no profile alone

    try:
        return await remembered_by(history)()
    except RequestError:
        return {}  # without a history only names that resemble a profile's are reported


async def _is_others(client: ApiClient, found: Unclaimed, waiting: Iterable[Pod]) -> bool:
    """Whether another scheduler places pods of this name, judged by a few hundred pods."""
    if found.why in (Why.REFUSED, Why.HANGING):
        return False
    if found.why is Why.MISSPELT and any(looked_at_by_others(pod.status.conditions) for pod in waiting):
        return True
    selector = f"spec.schedulerName={found.scheduler_name},spec.nodeName!="
    placed = Wire(Pod).page(await client.get(_PODS, {"fieldSelector": selector, "limit": str(_SAMPLE)}))
    return any(isinstance(pod, Pod) and placed_by_others(pod) for pod in placed.items)
