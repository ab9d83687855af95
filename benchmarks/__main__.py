"""`python -m benchmarks`, in a checkout: the benchmarks of `placewright bench`, those of single features, and `--before`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Final

from benchmarks import devices, gangs, moves, reload
from benchmarks.comparison import add_before_options
from placewright.api.bad_input import InputError, printable
from placewright_lab.bench.benchmark import Benchmark
from placewright_lab.commands import bench

BENCHMARKS: Final[Mapping[str, Benchmark]] = {
    **bench.BENCHMARKS,
    "gangs": gangs,
    "devices": devices,
    "moves": moves,
    "reload": reload,
}
#: Benchmarks that tell how long the measured work took, so that two checkouts can be compared.
COMPARED: Final = ("decisions", "end-to-end", "gangs", "devices", "moves")


def main(words: Sequence[str] | None = None) -> int:
    """Run one benchmark; return the exit code, as `placewright` has it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Compare Placewright with itself.")
    benchmarks = parser.add_subparsers(title="benchmarks", required=True, metavar="BENCHMARK")
    for name, benchmark in BENCHMARKS.items():
        one = bench.add_benchmark(benchmarks, name, benchmark)
        if name in COMPARED:
            add_before_options(one)
    args = parser.parse_args(words)
    try:
        code: int = args.main(args)
    except InputError as error:
        sys.stderr.write(f"placewright: error: {printable(str(error))}\n")
        return 2
    return code


if __name__ == "__main__":
    sys.exit(main())
