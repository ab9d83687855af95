"""Explains a pod from the API server's objects alone.

It computes the decision that a scheduler with the same profile would make now; past attempts are unknown.
"""

from __future__ import annotations

from msgspec.structs import replace

from placewright.api.bad_input import InputError
from placewright.api.objects import Node, Pod
from placewright.api.pods import PodInfo
from placewright.api.profile import SchedulingProfile
from placewright.cli.explain.fromoperator import Subject
from placewright.cli.livecluster import UNFINISHED, readable
from placewright.cli.profiles.connection import read_pod
from placewright.explain.explanation import Explanation
from placewright.explain.observed import ObservedObjects, evaluated_once, with_company, with_decision
from placewright.kube.client import ApiClient
from placewright.kube.listonce import list_once


async def explained_here(client: ApiClient, subject: Subject, why: str, leader: str = "") -> Explanation:
    """Explain a pod without an operator.

    Args:
        client: client of the API server.
        subject: the pod.
        why: why no operator was asked; goes into the notes.
        leader: the replica that leads and could not be asked.

    Raises:
        InputError: the pod does not exist, or its profile cannot be used.
        RequestError: the server refused or did not answer.
    """
    pod = await _pod(client, subject)
    about = Explanation(
        pod.namespace, pod.name, pod.uid, pod.scheduler_name, node=pod.node_name or "", source=client.access.server, notes=(why,),
        pending=not pod.node_name and not pod.finished, leader=leader,
    )  # fmt: skip
    # Only a pod without a node needs the whole cluster; a bound pod's annotation has its decision.
    if not pod.node_name:
        seen = await _seen(client)
        return evaluated_once(with_company(about, pod, seen), pod, seen)
    if pod.pod_group is not None or pod.pod.spec.resource_claims:
        try:
            about = with_company(about, pod, await _seen(client))
        except InputError as problem:  # the rest of the explanation needs the pod only
            about = replace(about, notes=(*about.notes, str(problem)))
    return with_decision(about, pod)


async def _pod(client: ApiClient, subject: Subject) -> PodInfo:
    pod = PodInfo(await read_pod(client, subject.namespace, subject.name))
    if subject.uid and subject.uid != pod.uid:
        raise InputError(f"there is no pod {subject.key} with uid {subject.uid}; the one that there is has {pod.uid}")
    return pod


async def _seen(client: ApiClient) -> ObservedObjects:
    seen = ObservedObjects()
    found = await readable(client, UNFINISHED)
    at = ""
    for source in found.sources:
        # All collections at the version of the first one, so that they show one moment.
        listed = await list_once(client, source, at)
        at = at or listed.version
        for item in listed.items:
            if isinstance(item, SchedulingProfile):
                seen.profiles.append(item)
            elif isinstance(item, Node):
                seen.cluster.set_node(item)
            elif not isinstance(item, Pod):
                seen.cluster.objects.put(item)
            elif item.spec.node_name:
                seen.cluster.set_pod(PodInfo(item))
            else:
                seen.waiting.add(PodInfo(item))
    seen.notes = tuple(found.notes)
    return seen
