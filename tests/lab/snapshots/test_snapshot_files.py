"""Snapshot files as they are found: cut off, damaged, hostile, of other versions. One clear line each, and bounded memory."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from placewright.api.bad_input import InputError
from placewright_lab.snapshots.linefile import LONGEST_LINE, NewFile
from placewright_lab.snapshots.snapshot import (
    FORMAT_VERSION,
    SNAPSHOT,
    Header,
    open_snapshot,
    profiles_in,
    read_snapshot,
    write_snapshot,
)

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "4"}}}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "ns", "uid": "u"}, "spec": {}}
PROFILE = {
    "apiVersion": "placewright.dev/v1alpha1",
    "kind": "SchedulingProfile",
    "metadata": {"name": "mine"},
    "spec": {"schedulerName": "own", "weights": {"NodeResourcesFit": 3}},
}


def header(**changes: Any) -> dict[str, Any]:
    return {"placewright": "snapshot", "version": 1, "taken": "2026-01-01T00:00:00Z", "server": "Kubernetes 1.36", "counts": {}} | changes


def lines(*objects: Any) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in objects)


@pytest.fixture
def file(tmp_path: Path) -> Callable[[bytes], Path]:
    def written(content: bytes) -> Path:
        path = tmp_path / "some.snapshot"
        path.write_bytes(content)
        return path

    return written


@pytest.mark.parametrize("packed", [gzip.compress, bytes], ids=["gzip", "plain"])
def test_a_snapshot_is_read_in_the_order_of_its_lines_packed_or_plain(file: Any, packed: Callable[[bytes], bytes]) -> None:
    path = file(packed(lines(header(counts={"Node": 1}), NODE, POD, PROFILE)))
    scenario = read_snapshot(path)
    assert scenario.objects == [NODE, POD]
    assert scenario.happenings == ()
    assert scenario.source == f"{path} (Kubernetes 1.36, 2026-01-01T00:00:00Z)"
    assert [(one.metadata.name, one.spec.weights) for one in profiles_in(path)] == [("mine", {"NodeResourcesFit": 3})]


def test_members_of_a_gzip_file_follow_each_other_and_blank_lines_are_nothing(file: Any) -> None:
    whole = lines(header(), NODE) + b"\n\n" + lines(POD).strip()
    path = file(gzip.compress(whole[:50]) + gzip.compress(b"") + gzip.compress(whole[50:]))
    assert read_snapshot(path).objects == [NODE, POD]


WRONG = {
    "empty": (b"", "line 1: found ''; allowed the header of a Placewright snapshot"),
    "yaml": (b"kind: Node\nmetadata: {}\n", "line 1: found 'kind: Node'; allowed the header of a Placewright snapshot"),
    "list": (b"[1]\n", "line 1: found '[1]'; allowed the header"),
    "bytes": (b"\xff\xfe\x00\n", "line 1: found"),
    "recording": (
        lines(header(placewright="recording")),
        "line 1: placewright: found 'recording'; allowed snapshot (placewright simulate --record reads this file)",
    ),
    "newer": (lines(header(version=2)), "line 1: version: found 2; allowed version 1 of the format, or a newer Placewright to read it"),
    "older": (lines(header(version=0)), "line 1: version: found 0; allowed version 1 of the format"),
    "version of another type": (lines(header(version="1")), "line 1: found"),
    "counts": (lines(header(counts={"Pod": 2}), POD), "'Pod': found '1 objects'; allowed 2, as its header says: it is not whole"),
    "counts of a wrong type": (lines(header(counts=[])), "line 1: Header: Expected `object`, got `array` - at `$.counts`"),
    "half a line": (lines(header(), NODE) + lines(POD)[:-9], "line 3: found"),
    "unknown kind": (
        lines(header(), NODE, {"kind": "Secret", "metadata": {"name": "s"}}),
        "line 3: kind: found 'Secret'; allowed one of CSI",
    ),
    "wrong type": (
        lines(header(), NODE | {"spec": {"taints": 3}}),
        "line 2: found 'Expected `array | null`, got `int` - at `$.spec.taints`'; allowed",
    ),
    "no metadata": (lines(header(), {"kind": "Node"}), "line 2: found 'Object missing required field `metadata`'"),
    "no name": (lines(header(), {"kind": "Node", "metadata": {}}), "line 2: metadata.name: found ''; allowed a name"),
    "twice": (lines(header(), POD, POD), "line 3: found 'Pod ns/p again'; allowed every object once"),
    "nesting": (lines(header()) + b'{"kind":"Node","metadata":{"name":"n"},"x":' + b"[" * 100_000 + b"\n", "line 2: found"),
}


@pytest.mark.parametrize(("content", "said"), WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("packed", [gzip.compress, bytes], ids=["gzip", "plain"])
def test_what_is_wrong_is_one_line_that_names_the_file_and_the_line(
    file: Any, packed: Callable[[bytes], bytes], content: bytes, said: str
) -> None:
    path = file(packed(content))
    with pytest.raises(InputError) as caught:
        read_snapshot(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ") and said in message
    assert "\n" not in message and len(message) < 500


@pytest.mark.parametrize("kept", [11, 40, 150, -1, -9])
def test_a_gzip_file_that_was_cut_off_says_so(file: Any, kept: int) -> None:
    path = file(gzip.compress(lines(header(), *[POD | {"metadata": {"name": f"p{i}"}} for i in range(99)]))[:kept])
    with pytest.raises(InputError, match=r"line \d+: the file ends in the middle: it was cut off"):
        read_snapshot(path)


def test_a_gzip_file_with_a_turned_byte_is_refused(file: Any) -> None:
    content = bytearray(gzip.compress(lines(header(), NODE, POD)))
    content[len(content) // 2] ^= 0xFF
    with pytest.raises(InputError, match=r"damaged: not gzip data|found "):
        read_snapshot(file(bytes(content)))


def test_a_line_without_end_is_refused_before_it_is_in_memory(file: Any) -> None:
    with pytest.raises(InputError, match=r"line 2: found 'a longer line'; allowed at most 16 MiB"):
        read_snapshot(file(gzip.compress(lines(header()) + b" " * (LONGEST_LINE + 2**20))))


def test_a_bomb_is_refused_at_the_limit_in_little_memory(file: Any) -> None:
    """A gibibyte of blanks is a megabyte of gzip; a process of its own, whose memory is bounded, reads them."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    line = b" " * (2**20 - 1) + b"\n"
    content = packer.compress(lines(header())) + b"".join(packer.compress(line) for _ in range(1000)) + packer.flush()
    path = file(content)
    program = (
        "import resource, sys; from pathlib import Path\n"
        "from placewright_lab.snapshots.snapshot import read_snapshot\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try: read_snapshot(Path(sys.argv[1]), 256 * 2**20)\n"
        "except Exception as error: print(error)\n"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True, timeout=60)
    said, grown = ran.stdout.splitlines()
    assert said == f"{path}: found 'more text in it'; allowed at most 256 MiB, which an option can raise"
    assert int(grown) < 64


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none: cannot be read: No such file"):
        read_snapshot(tmp_path / "none")
    with pytest.raises(InputError, match=r"cannot be read: Is a directory"):
        read_snapshot(tmp_path)


# --- writing ---


def whole(**changes: Any) -> Header:
    return Header(placewright=SNAPSHOT, version=FORMAT_VERSION, taken="2026-01-01T00:00:00Z", **changes)


def test_what_is_written_can_be_read_and_belongs_to_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "s.gz"
    size = write_snapshot(path, whole(counts={"Node": 1}), [json.dumps(NODE).encode()])
    assert size == path.stat().st_size
    assert path.stat().st_mode & 0o777 == 0o600
    assert open_snapshot(path).objects == [NODE]
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_is_there_is_replaced_only_by_force(tmp_path: Path) -> None:
    path = tmp_path / "s.gz"
    path.write_text("precious")
    with pytest.raises(InputError, match=r"s\.gz: found 'a file of that name'; allowed a new name, or --force"):
        write_snapshot(path, whole(), [])
    assert path.read_text() == "precious"
    write_snapshot(path, whole(), [], force=True)
    assert open_snapshot(path).objects == []


def test_a_file_whose_writing_fails_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    def breaking() -> Any:
        yield b"{}"
        raise OSError(28, "No space left on device")

    path = tmp_path / "s.gz"
    path.write_text("precious")
    with pytest.raises(InputError, match=r"s\.gz: cannot be written: No space left on device"):
        write_snapshot(path, whole(), breaking(), force=True)
    assert path.read_text() == "precious"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "none" / "s.gz"
    with pytest.raises(InputError, match=r"none/s\.gz: cannot be written: No such file or directory"):
        write_snapshot(path, whole(), [])


def test_until_a_new_file_stands_nothing_has_its_name(tmp_path: Path) -> None:
    path = tmp_path / "s.gz"
    with NewFile(path) as new:
        new.file.write(b"half")
        new.file.flush()
        assert not path.exists()
        new.stand()
        new.file.write(b" and more")
    assert path.read_bytes() == b"half and more"
