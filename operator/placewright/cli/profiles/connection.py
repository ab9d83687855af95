"""Which cluster the commands speak to, as kubectl's users expect it, and what they do with its answers."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from placewright.api.bad_input import InputError
from placewright.cli.options import add_cluster_options
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright.kube.errors import FORBIDDEN, NOT_FOUND, ApiError, RequestError
from placewright.kube.history import DEFAULT_NAMESPACE, HistoryStore

T = TypeVar("T")


def add_operator_options(parser: argparse.ArgumentParser) -> None:
    """`--kubeconfig`, `--context` and `--operator-namespace`; `-n`, as that was once called, is a pod's namespace elsewhere."""
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
    """Do the work with a client of the cluster that the options name; what the API server refuses is one line, as `InputError`."""
    access = load_config(args.kubeconfig, args.context)

    async def connected() -> T:
        async with ApiClient(access, user_agent="placewright-cli") as client:
            return await work(client)

    try:
        return asyncio.run(connected())
    except RequestError as problem:
        raise InputError(f"{access.server}: {in_words(problem)}") from None


def in_words(problem: RequestError) -> str:
    """What went wrong, in one line."""
    return " ".join(str(problem).split())


def history_of(client: ApiClient, args: argparse.Namespace) -> HistoryStore:
    """The history beside the operator."""
    return HistoryStore(client, args.namespace)


def no_history(problem: RequestError, namespace: str) -> str:
    """Why there is no history to be read, and what to do."""
    if isinstance(problem, ApiError) and problem.status == FORBIDDEN:
        wanted = f"the right to list controllerrevisions.apps in namespace {namespace} is missing; Kubernetes' role view has it"
        return f"the history cannot be read: {wanted}"
    if isinstance(problem, ApiError) and problem.status == NOT_FOUND:
        return f"there is no history in namespace {namespace}; --operator-namespace names the operator's"
    return f"the history cannot be read: {in_words(problem)}"
