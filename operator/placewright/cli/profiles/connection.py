"""Connects the commands to a cluster, by kubectl's rules, and turns its refusals into one line."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar
from urllib.parse import quote

from placewright.api.bad_input import InputError
from placewright.api.objects import Pod
from placewright.cli.options import add_cluster_options
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright.kube.errors import FORBIDDEN, NOT_FOUND, ApiError, RequestError
from placewright.kube.history import DEFAULT_NAMESPACE, HistoryStore, Revision

T = TypeVar("T")


def add_operator_options(parser: argparse.ArgumentParser) -> None:
    """Add `--kubeconfig`, `--context` and `--operator-namespace`; also `-n`, its old name, which elsewhere is a pod's namespace."""
    group = add_cluster_options(parser)
    group.add_argument(
        "--operator-namespace",
        dest="namespace",
        default=DEFAULT_NAMESPACE,
        metavar="NAME",
        help="where the operator runs: the history is kept there; profiles themselves have no namespace (default: %(default)s)",
    )
    group.add_argument("-n", "--namespace", dest="namespace", default=argparse.SUPPRESS, help=argparse.SUPPRESS)


def ask(args: argparse.Namespace, work: Callable[[ApiClient], Awaitable[T]]) -> T:
    """Do work with a client of the cluster that the options name.

    Args:
        args: parsed options.
        work: gets the client.

    Returns:
        The result of the work.

    Raises:
        InputError: the API server refused or did not answer.
    """
    access = load_config(args.kubeconfig, args.context)

    async def connected() -> T:
        async with ApiClient(access, user_agent="placewright-cli") as client:
            return await work(client)

    try:
        return asyncio.run(connected())
    except RequestError as problem:
        raise InputError(f"{access.server}: {in_words(problem)}") from None


def in_words(problem: RequestError) -> str:
    """Write an error in one line."""
    return " ".join(str(problem).split())


def history_of(client: ApiClient, args: argparse.Namespace) -> HistoryStore:
    """Open the history in the operator's namespace."""
    return HistoryStore(client, args.namespace)


async def revisions_of(client: ApiClient, args: argparse.Namespace) -> list[Revision]:
    """Read the revisions of the profile `args.name`; raise `InputError` if the history cannot be read."""
    try:
        return await history_of(client, args).revisions(args.name)
    except RequestError as problem:
        status = problem.status if isinstance(problem, ApiError) else None
        if status == NOT_FOUND:
            raise InputError(f"there is no history in namespace {args.namespace}; --operator-namespace names the operator's") from None
        why = in_words(problem)
        if status == FORBIDDEN:
            why = f"the right to list controllerrevisions.apps in namespace {args.namespace} is missing; Kubernetes' role view has it"
        raise InputError(f"the history cannot be read: {why}") from None


async def if_found(reading: Awaitable[T]) -> T | None:
    """Await a read; return None if the API server has no such object."""
    try:
        return await reading
    except ApiError as problem:
        if problem.status != NOT_FOUND:
            raise
        return None


async def read_pod(client: ApiClient, namespace: str, name: str) -> Pod:
    """Read a pod; raise `InputError` if there is none of that name."""
    pod = await if_found(client.get_as(f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(name, safe='')}", Pod))
    if pod is None:
        raise InputError(f"there is no pod {namespace}/{name}")
    return pod
