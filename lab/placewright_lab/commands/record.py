"""`placewright record`: follows a cluster into a file, for `simulate --record` to play again."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from pathlib import Path

from placewright.api.bad_input import InputError, printable
from placewright.api.durations import seconds
from placewright.cli.helptexts import describe
from placewright.cli.livecluster import readable
from placewright.cli.options import Subparsers, add_cluster_options, add_largest_option
from placewright.cli.profiles.connection import ask
from placewright.kube.client import ApiClient
from placewright_lab.commands.helptexts import TEXTS
from placewright_lab.commands.snapshot import add_file_option, in_counts
from placewright_lab.snapshots.linefile import NewFile, refuse_to_overwrite
from placewright_lab.snapshots.recorder import Recorded, Recorder
from placewright_lab.snapshots.snapshot import read_recording


def register(subparsers: Subparsers) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("record", help="follow what the scheduler sees of a cluster into a file")
    add_file_option(parser, "where to write")
    parser.add_argument("--for", dest="duration", type=_duration, metavar="DURATION", help="such as 1h30m (default: until Ctrl-C)")
    parser.add_argument("--force", action="store_true", help="replace a file of that name")
    parser.add_argument("--show", type=Path, metavar="FILE", help="check a recording and say what is in it, instead of making one")
    add_largest_option(parser)
    add_cluster_options(parser)
    parser.set_defaults(main=main)
    describe(parser, "record", TEXTS)


def main(args: argparse.Namespace) -> int:
    """Record until the end, or look into a recording. The exit code is 1 if the cluster did not answer before the end."""
    if args.show is not None:
        return _show(args.show, args.largest << 20)
    if args.output is None:
        raise InputError("--write FILE is needed: where to write")
    refuse_to_overwrite(args.output, force=args.force)
    recorded = ask(args, lambda client: _record(client, args))
    if not recorded.counts:
        sys.stderr.write("placewright: ended before everything had been listed; nothing is kept\n")
        return 1
    said = f"{in_acts(recorded)} in {recorded.seconds:.1f} s; {recorded.size:,} bytes"
    sys.stdout.write(f"{printable(str(args.output))}: {said}\n")
    return 0


def in_acts(recorded: Recorded) -> str:
    """Return `3 added, 1 modified, 0 deleted`."""
    return ", ".join(f"{recorded.acts[act]:,} {act.lower()}" for act in ("ADDED", "MODIFIED", "DELETED"))


async def _record(client: ApiClient, args: argparse.Namespace) -> Recorded:
    found = await readable(client)
    sys.stderr.writelines(f"placewright: {printable(note)}\n" for note in found.notes)
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    with NewFile(args.output, force=args.force) as new:
        return await Recorder(client, found).run(new, stop, lambda recorded: _begun(args.output, recorded), args.duration)


def _begun(path: Path, recorded: Recorded) -> None:
    sys.stderr.write(f"placewright: recording into {printable(str(path))} from {in_counts(recorded.counts)}\n")
    sys.stderr.flush()


def _show(path: Path, largest: int) -> int:
    recording = read_recording(path, largest)
    header, scenario = recording.header, recording.scenario
    came = sum(1 for each in scenario.happenings if each.act == "ADDED" and each.manifest["kind"] == "Pod")
    lines = [
        f"{path}: recording, version {header.version}",
        f"begun {header.taken} at {header.server or 'an API server'}; the last change came after {recording.seconds:.1f} s",
        f"at the beginning {in_counts(header.counts)}",
        f"{len(scenario.happenings):,} changes to replay, {came:,} pods came; placed were {len(recording.recorded_nodes):,}",
        *(f"left out: {what}" for what in header.left_out),
    ]
    sys.stderr.writelines(f"placewright: {printable(note)}\n" for note in recording.notes)
    sys.stdout.writelines(f"{printable(line)}\n" for line in lines)
    return 0


def _duration(text: str) -> float:
    found = seconds(text)
    if not found:
        raise argparse.ArgumentTypeError(f"found {text!r}; allowed a duration such as 90s, 30m or 1h30m")
    return found
