"""`placewright snapshot`: saves the objects of a cluster that the scheduler reads, for `simulate` and similar commands."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from placewright.api.bad_input import InputError, printable
from placewright.cli.helptexts import describe
from placewright.cli.livecluster import UNFINISHED, now_in_words, readable
from placewright.cli.options import Subparsers, add_cluster_options, add_largest_option
from placewright.cli.profiles.connection import ask
from placewright.kube.client import ApiClient
from placewright.kube.listonce import list_once
from placewright.kube.listwatch import Malformed
from placewright_console.local.prunedobjects import kind_of, manifest_line, pruned
from placewright_lab.commands.helptexts import TEXTS
from placewright_lab.snapshots.anonymiser import anonymised
from placewright_lab.snapshots.linefile import refuse_to_overwrite
from placewright_lab.snapshots.snapshot import FORMAT_VERSION, SNAPSHOT, Header, open_snapshot, write_snapshot


@dataclass(frozen=True, slots=True)
class Taken:
    """A snapshot in memory, with `notes` for the person who asked for it."""

    header: Header
    lines: list[bytes]
    notes: list[str]


def register(subparsers: Subparsers) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("snapshot", help="save what the scheduler sees of a cluster")
    add_file_option(parser, "where to write (default: placewright-TIME.snapshot.gz in this folder)")
    parser.add_argument("--force", action="store_true", help="replace a file of that name")
    parser.add_argument("--anonymise", action="store_true", help="made-up names, labels and images; placement stays the same")
    parser.add_argument("--show", type=Path, metavar="FILE", help="check a snapshot and say what is in it, instead of taking one")
    add_largest_option(parser)
    add_cluster_options(parser)
    parser.set_defaults(main=main)
    describe(parser, "snapshot", TEXTS)


def add_file_option(parser: argparse.ArgumentParser, says: str) -> None:
    """Add `--write`. Its former name `-o`, which means a format in other commands, still works."""
    parser.add_argument("--write", dest="output", type=Path, metavar="FILE", help=says)
    parser.add_argument("-o", "--output", dest="output", type=Path, default=argparse.SUPPRESS, help=argparse.SUPPRESS)


def main(args: argparse.Namespace) -> int:
    """Take a snapshot, or look into one."""
    if args.show is not None:
        return _show(args.show, args.largest << 20)
    path = args.output or Path(f"placewright-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.snapshot.gz")
    refuse_to_overwrite(path, force=args.force)
    taken = ask(args, lambda client: take(client, anonymise=args.anonymise))
    size = write_snapshot(path, taken.header, taken.lines, force=args.force)
    sys.stderr.writelines(f"placewright: {printable(note)}\n" for note in taken.notes)
    sys.stdout.write(f"{printable(str(path))}: {in_counts(taken.header.counts)}; {size:,} bytes\n")
    return 0


async def take(client: ApiClient, *, anonymise: bool = False) -> Taken:
    """List everything that placement reads, if possible in its state when the pods were listed.

    Raises `InputError` for content that a snapshot cannot have, and `RequestError` if no server answers.
    """
    found = await readable(client, UNFINISHED)
    notes, items, moment, later = found.notes, [], "", []
    taken = now_in_words()
    for source in found.sources:
        try:
            listed = await list_once(client, source, moment)
        except Malformed as problem:
            raise InputError(f"{client.access.server}: {source.path}: {problem}") from None
        moment = moment or listed.version
        later += [] if listed.as_wanted else [source.path.rpartition("/")[2]]
        notes += [f"left out, it cannot be read: {line}" for line in listed.bad]
        items += [pruned(item) for item in listed.items]
    if later:
        notes.append(f"the cluster changed meanwhile: {', '.join(dict.fromkeys(later))} are a moment younger than the pods")
    counts = dict(Counter(map(kind_of, items)))
    lines = [manifest_line(item) for item in items]
    header = Header(
        placewright=SNAPSHOT,
        version=FORMAT_VERSION,
        taken=taken,
        server=found.server,
        kubernetes=found.kubernetes,
        counts=counts,
        anonymised=anonymise,
        left_out=tuple(found.left_out),
    )
    return Taken(header, anonymised(lines) if anonymise else lines, notes)


def in_counts(counts: dict[str, int]) -> str:
    """Return `3 Nodes, 1 Pod`, the most important first."""
    first = ("Node", "Pod")
    ordered = [*(kind for kind in first if kind in counts), *sorted(counts.keys() - set(first))]
    return ", ".join(f"{counts[kind]:,} {_plural(kind) if counts[kind] != 1 else kind}" for kind in ordered) or "no objects"


def _plural(kind: str) -> str:
    if kind.endswith("s"):
        return f"{kind}es"
    return f"{kind[:-1]}ies" if kind.endswith("ty") else f"{kind}s"


def _show(path: Path, largest: int) -> int:
    snapshot = open_snapshot(path, largest)
    header = snapshot.header
    names = "made-up names" if header.anonymised else "real names"
    waiting = sum(1 for each in snapshot.objects if each["kind"] == "Pod" and not (each.get("spec") or {}).get("nodeName"))
    lines = [
        f"{path}: snapshot, version {header.version}, {names}",
        f"taken {header.taken} from {header.server or 'an API server'}",
        f"{in_counts(header.counts)}; {waiting:,} of the pods wait for a node",
        *(f"left out: {what}" for what in header.left_out),
        *(f"profile {one.metadata.name} for {one.spec.scheduler_name}" for one in snapshot.profiles),
    ]
    sys.stdout.writelines(f"{printable(line)}\n" for line in lines)
    return 0
