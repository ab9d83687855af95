"""`placewright explain`, also `kubectl placewright explain`: why a pod is on its node, or on none, and which changes would help.

It asks the active replica, which remembers the pod's last attempts. Where none can be reached, it evaluates the pod here, from the API
server's objects: the decision that a scheduler with the same profile would make now. Past attempts are unknown then.
"""

from __future__ import annotations

import argparse
import asyncio
import sys

from msgspec.structs import replace

from placewright.api.bad_input import InputError, bad_field, printable
from placewright.api.objects import Node, Pod
from placewright.api.pods import PodInfo
from placewright.api.profile import SchedulingProfile
from placewright.cli.explain.fromoperator import Subject, ask_at, ask_forwarded, current_namespace
from placewright.cli.explain.tables import show_explanation
from placewright.cli.livecluster import UNFINISHED, readable
from placewright.cli.operatorport import CannotAsk, OperatorPlace, ReplicaOutOfReach, add_operator_port_options, operator_url, token_for
from placewright.cli.options import Subparsers, add_cluster_options
from placewright.cli.profiles.connection import ask, read_pod
from placewright.cli.terminal import console, print_json
from placewright.explain.explanation import Explanation
from placewright.explain.observed import ObservedObjects, evaluated_once, with_company, with_decision
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright.kube.listonce import list_once


def register(subparsers: Subparsers) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("explain", help="explain why a pod is on its node, or on none, and which changes would help")
    parser.add_argument("pod", metavar="POD", help="name, or NAMESPACE/NAME")
    parser.add_argument("-n", "--namespace", metavar="NAME", help="namespace of the pod (default: the kubeconfig context's)")
    parser.add_argument("--uid", default="", help="uid of the pod, if several had the name one after the other")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="default: table")
    add_cluster_options(parser)
    group = add_operator_port_options(parser)
    group.add_argument("--here", action="store_true", help="ask no operator: evaluate the pod from the API server's objects")
    parser.set_defaults(main=main)


def main(args: argparse.Namespace) -> int:
    """Print the explanation."""
    pod = _subject(args)
    found = _explained_at(args, pod) if args.server else ask(args, lambda client: _explained(args, client, pod))
    for note in found.notes:
        sys.stderr.write(f"placewright: {printable(note)}\n")
    if args.output == "json":
        print_json(found)
    else:
        show_explanation(console(), found)
    return 0


def _subject(args: argparse.Namespace) -> Subject:
    namespace, slash, name = args.pod.rpartition("/")
    if not name or "/" in namespace or (slash and not namespace):
        raise bad_field("POD", args.pod, "NAME or NAMESPACE/NAME")
    if slash and args.namespace not in (None, namespace):
        raise bad_field("--namespace", args.namespace, f"{namespace}, which POD names, or none")
    return Subject(namespace or args.namespace or current_namespace(args.kubeconfig, args.context), name, args.uid)


async def _explained(args: argparse.Namespace, client: ApiClient, pod: Subject) -> Explanation:
    why, leader = "no operator was asked", ""
    # The operator first, because it alone knows past attempts and its queue.
    if not args.here:
        try:
            place = OperatorPlace(client, args.kubeconfig, args.context, args.operator_namespace)
            found = await ask_forwarded(place, pod, args.token)
            if found is not None:
                return found if found.node or found.queue is not None else await _looked_up(client, pod, found)
            why = "the operator knows nothing of this pod"
        except CannotAsk as problem:
            why = f"no operator was asked: {problem}"
            leader = problem.replica if isinstance(problem, ReplicaOutOfReach) else ""
    return await explained_here(client, pod, why, leader)


async def _looked_up(client: ApiClient, pod: Subject, found: Explanation) -> Explanation:
    """Add the API server's view of a pod whose past the operator knows, and nothing else."""
    try:
        here = await explained_here(client, pod, "the operator has tried the pod, and has it neither on a node nor in its queue now")
    except InputError:
        return found
    return replace(here, tried=found.tried)


def _explained_at(args: argparse.Namespace, pod: Subject) -> Explanation:
    try:
        operator_url(args.server)  # refuse a wrong URL before the kubeconfig is read
        token = args.token or token_for(load_config(args.kubeconfig, args.context), None, args.server)
        found = asyncio.run(ask_at(args.server, pod, token))
    except CannotAsk as problem:
        raise InputError(f"--server: {problem}") from None
    if found is None:
        raise InputError(f"{args.server} knows nothing of pod {pod.key}")
    return found


# --- without an operator ---------------------------------------------------------------------------------------------------------


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
    found = await readable(client, UNFINISHED)
    seen = ObservedObjects(kubernetes=found.kubernetes)
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
