"""Files of JSON lines, gzipped or plain, with bounds. Reading takes no more memory than the longest allowed line.

Every error names the file and the line. A file that was cut off is an error, unless the reader can use its beginning. A new file gets its
name only when it is complete enough, and only its owner may read it.
"""

from __future__ import annotations

import gc
import gzip
import os
import secrets
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeAlias

from placewright.api.bad_input import InputError, bad_field
from placewright.cli.options import LARGEST_MIB

#: Bytes of text in an unpacked file, enough for about a million pods.
LARGEST_TEXT: Final = LARGEST_MIB << 20
#: Bytes of a line. An API server takes no object above 1.5 MiB, and the lines have fewer fields.
LONGEST_LINE: Final = 16 * 2**20
_MAGIC: Final = b"\x1f\x8b"
_PIECE: Final = 2**18
_OWNER_ONLY: Final = 0o600
#: Function that hears in words that the file ends too early.
OnCut: TypeAlias = Callable[[str], None]


@contextmanager
def only_what_stays() -> Iterator[None]:
    """Stop the garbage collector during work that makes many objects and no garbage. It would look through all of them again and again."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def numbered_lines(path: Path, largest: int = LARGEST_TEXT, on_cut: OnCut | None = None) -> Iterator[tuple[int, bytes]]:
    """Yield each line and its number, from 1, without blank lines.

    Raises `InputError` for an unreadable, damaged or cut file, and above `largest` bytes of text. With `on_cut`, a cut file ends after its
    last whole line, and `on_cut` hears of it.
    """
    try:
        with path.open("rb") as file:
            yield from _lines(_pieces(path, file, largest), path, on_cut)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _lines(text: Iterator[bytes], path: Path, on_cut: OnCut | None) -> Iterator[tuple[int, bytes]]:
    number, begun = 1, [b""]
    try:
        for piece in text:
            *whole, rest = piece.split(b"\n")
            for line in whole:
                begun.append(line)
                yield from _unless_blank(number, b"".join(begun))
                number, begun = number + 1, []
            begun.append(rest)
            if sum(map(len, begun)) > LONGEST_LINE:
                raise bad_field(f"{path}: line {number}", "a longer line", f"at most {LONGEST_LINE >> 20} MiB")
    except EOFError:
        if on_cut is None:
            raise InputError(f"{path}: line {number}: the file ends in the middle: it was cut off while it was written or copied") from None
        on_cut(f"{path}: the file ends in the middle of line {number}; the lines before it are used")
        return
    last = b"".join(begun)
    if last.strip() and on_cut is not None:
        on_cut(f"{path}: the file ends in the middle of line {number}; the lines before it are used")
        return
    yield from _unless_blank(number, last)


def _unless_blank(number: int, line: bytes) -> Iterator[tuple[int, bytes]]:
    if line.strip():
        yield number, line


def _pieces(path: Path, file: BufferedReader, largest: int) -> Iterator[bytes]:
    """Yield the text of a file in pieces of bounded size. Raises `EOFError` if a gzip file ends too early."""
    stream = gzip.GzipFile(fileobj=file) if file.peek(len(_MAGIC)).startswith(_MAGIC) else file
    size = 0
    try:
        while piece := stream.read1(_PIECE):
            size += len(piece)
            if size > largest:
                raise bad_field(str(path), "more text in it", f"at most {largest >> 20} MiB, which an option can raise")
            yield piece
    except (zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: damaged: not gzip data ({error})") from None


class NewFile:
    """A context in which `file` is written under a temporary name. `stand` moves it to the wanted name.

    Without `stand` nothing of it is left. Every failure to open, write or move is an `InputError` that names the file.

    Attributes:
        file: file that is open for writing.
    """

    def __init__(self, path: Path, *, force: bool = False) -> None:
        """Raise `InputError` if the file exists already, unless forced."""
        self._path = path
        self._force = force
        self._part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
        refuse_to_overwrite(self._path, force=self._force)

    def __enter__(self) -> Self:
        try:
            descriptor = os.open(self._part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
        except (OSError, ValueError) as error:
            raise self._unwritable(error) from None
        self.file = os.fdopen(descriptor, "wb")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with suppress(OSError):
            self.file.close()
        with suppress(OSError):
            self._part.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise self._unwritable(error) from None

    def stand(self) -> None:
        """Put the written part on disk under its name. The caller may write more afterwards."""
        self.file.flush()
        os.fsync(self.file.fileno())
        refuse_to_overwrite(self._path, force=self._force)
        self._part.replace(self._path)

    def _unwritable(self, error: Exception) -> InputError:
        return InputError(f"{self._path}: cannot be written: {getattr(error, 'strerror', None) or error}")


def refuse_to_overwrite(path: Path, *, force: bool) -> None:
    """Raise `InputError` if the file exists already, unless forced."""
    if not force and path.exists():
        raise bad_field(str(path), "a file of that name", "a new name, or --force to replace it")
