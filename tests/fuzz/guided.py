"""Fuzzing that is guided by coverage, for those who have hours.

With `pip install atheris`:

    python tests/fuzz/guided.py wire -max_total_time=3600

Targets: see `TARGETS`; what follows is libFuzzer's. No part of `make test`: atheris is there for few versions of Python.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path

import atheris  # type: ignore[import-not-found]

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "operator")]

with atheris.instrument_imports(include=["placewright", "yaml"]):
    from placewright.api.bad_input import InputError
    from placewright.api.decode import DecodeError, decode
    from placewright.api.objects import Node, Pod
    from placewright.api.pods import PodInfo
    from placewright.api.quantity import QuantityError, nano
    from placewright.api.yamldocs import read_documents
    from placewright.kube.errors import error_from_answer
    from placewright.kube.extenders.messages import BadAnswer, read_error, read_filter, read_scores, read_victims
    from placewright.kube.listwatch import Malformed, Wire
    from placewright.plugins.catalog import in_tree
    from placewright.profiles.config import read_profiles
    from placewright.profiles.kubescheduler.reader import convert
    from placewright.profiles.problem import ProfileError
    from placewright.profiles.resolve import resolve
    from placewright.profiles.validation import check_file

PLUGINS = in_tree()


def objects(data: bytes) -> None:
    """Pods and nodes."""
    with contextlib.suppress(DecodeError):
        decode(data, Node)
    with contextlib.suppress(DecodeError, QuantityError):
        PodInfo(decode(data, Pod))


def quantities(data: bytes) -> None:
    """Quantities."""
    with contextlib.suppress(QuantityError):
        nano(data.decode("utf-8", "replace"))


def wire(data: bytes) -> None:
    """Lists, watches and refusals."""
    for read in (Wire(Pod).page, Wire(Node).event):
        with contextlib.suppress(Malformed):
            read(data)
    error_from_answer(429, data, data[:8].decode("latin-1"))


def extenders(data: bytes) -> None:
    """Answers of extenders."""
    for read in (read_filter, read_scores, read_victims, read_error):
        with contextlib.suppress(BadAnswer):
            read(data)


def profile_files(data: bytes) -> None:
    """Profiles and configurations."""
    text = data.decode("utf-8", "replace")
    check_file(text, "f", PLUGINS)
    with contextlib.suppress(ProfileError):
        convert(text, "f", PLUGINS)
    with contextlib.suppress(ProfileError):
        for profile in read_profiles(text, "f"):
            resolve(profile, PLUGINS)


def manifests(data: bytes) -> None:
    """YAML of evaluate and the demo."""
    with contextlib.suppress(InputError):
        list(read_documents(data.decode("utf-8", "replace"), "f"))


TARGETS: dict[str, Callable[[bytes], None]] = {
    target.__name__: target for target in (objects, quantities, wire, extenders, profile_files, manifests)
}

if __name__ == "__main__":
    name = sys.argv.pop(1) if len(sys.argv) > 1 else ""
    if name not in TARGETS:
        sys.exit(f"guided.py: found {name!r}; allowed one of {', '.join(TARGETS)}")
    atheris.Setup(sys.argv, TARGETS[name])
    atheris.Fuzz()
