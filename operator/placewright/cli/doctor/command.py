"""`placewright doctor`: checks an installation with the rights of its user; a line for each check, and what to do."""

from __future__ import annotations

import argparse
import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final

from rich.text import Text

from placewright.cli.doctor.operator import leader, operator, pods
from placewright.cli.doctor.patient import Check, CheckResult, Level, Patient, examined, fail
from placewright.cli.doctor.profiles import packages, profiles, second_scheduler, unclaimed
from placewright.cli.doctor.rights import rights
from placewright.cli.doctor.server import api_server, clock, definitions, openapi
from placewright.cli.options import Subparsers
from placewright.cli.profiles.connection import add_operator_options
from placewright.cli.terminal import console, plain, print_json
from placewright.cli.version import installed
from placewright.kube.auth.login import ClusterAccess, load_config
from placewright.kube.client import ApiClient
from placewright.kube.errors import RequestError

#: Checks in order, because later ones use results of earlier ones.
_CHECKS: Final[tuple[tuple[str, Check], ...]] = (
    ("clock", clock),
    ("openapi", openapi),
    ("definitions", definitions),
    ("operator", operator),
    ("pods", pods),
    ("rights", rights),
    ("leader", leader),
    ("profiles", profiles),
    ("packages", packages),
    ("unclaimed-pods", unclaimed),
    ("second-scheduler", second_scheduler),
)
_STYLES: Final = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "red"}
_TIMEOUT: Final = 10.0


def register(subparsers: Subparsers) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("doctor", help="check an installation, and print what to do about each problem")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="default: table")
    add_operator_options(parser)
    parser.set_defaults(main=main)


def main(args: argparse.Namespace) -> int:
    """Print a line for each check.

    Returns:
        1 when a check failed, else 0.
    """
    found = asyncio.run(diagnosed(load_config(args.kubeconfig, args.context), args.namespace))
    counts = Counter(each.level for each in found)
    if args.output == "json":
        body = {"findings": found, **{level.value: counts[level] for level in Level}}
        print_json(body)
    else:
        _print(found, counts)
    return 1 if counts[Level.FAIL] else 0


async def diagnosed(access: ClusterAccess, namespace: str, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> list[CheckResult]:
    """Run all checks.

    Args:
        access: address of the API server and the user's credentials.
        namespace: the operator's.
        now: this machine's clock.

    Returns:
        The results, in the order of the checks.
    """
    async with ApiClient(access, user_agent="placewright-cli", timeout=_TIMEOUT) as client:
        patient = Patient(client, namespace, installed("placewright"), now)
        try:
            found = await api_server(patient)
        except RequestError as problem:
            said = f"{access.server} does not answer: {' '.join(str(problem).split())}"
            return [fail("api-server", said, "look at the kubeconfig (--kubeconfig, --context), the network and the API server")]
        for name, check in _CHECKS:
            found += await examined(name, check, patient)
        return found


def _print(found: Sequence[CheckResult], counts: Counter[Level]) -> None:
    to = console(unfolded=True)
    width = max(len(each.check) for each in found)
    for each in found:
        line = Text.assemble((f"{each.level:<4}", _STYLES[each.level]), f"  {each.check:<{width}}  ", plain(each.says))
        if each.do:
            line.append_text(plain(f" -> {each.do}"))
        to.print(line, soft_wrap=True)
    to.print(plain(", ".join(f"{counts[level]} {level}" for level in Level)), soft_wrap=True)
