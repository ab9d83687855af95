"""Files of JSON lines, gzipped or plain, read with bounds: no file, however made, takes more memory than its longest line may.

Every error names the file and the line. A file that was cut off in its middle is an error, unless the reader has a use for what is there.
A new one comes to stand under its name only when it is worth something, and its owner alone may read it.
"""

from __future__ import annotations

import gc
import os
import secrets
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, Self, TypeAlias

from placewright.api.bad_input import InputError, bad_field
from placewright.cli.options import LARGEST_MIB

#: Bytes of text that a file may hold once it is unpacked; about a million pods.
LARGEST_TEXT: Final = LARGEST_MIB << 20
#: Bytes. An API server takes no object above 1.5 MiB, and the lines are cut down from those.
LONGEST_LINE: Final = 16 * 2**20
_MAGIC: Final = b"\x1f\x8b"
_PIECE: Final = 2**18
_OWNER_ONLY: Final = 0o600
_GZIP: Final = 31
"""Window bits for zlib: the largest window, with a gzip header."""

#: Told, in words, that the file ends too early.
OnCut: TypeAlias = Callable[[str], None]


@contextmanager
def only_what_stays() -> Iterator[None]:
    """Around work that makes many objects and no garbage: the collector would look through all of them again and again."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class _Cut(Exception):
    """The file ends before it is at its end."""


def numbered_lines(path: Path, largest: int = LARGEST_TEXT, on_cut: OnCut | None = None) -> Iterator[tuple[int, bytes]]:
    """Each line and its number, from 1; blank lines are skipped.

    Raises `InputError` for what cannot be read, for a damaged or cut file, and above `largest` bytes of text. With `on_cut`, what follows
    the last whole line of a cut file is left out and told instead.
    """
    try:
        with path.open("rb") as file:
            yield from _lines(_Text(path, file, largest), path, on_cut)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _lines(text: _Text, path: Path, on_cut: OnCut | None) -> Iterator[tuple[int, bytes]]:
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
    except _Cut:
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


class _Text:
    """The text of a file, in pieces of bounded size; raises `_Cut` where a gzip file ends too early."""

    def __init__(self, path: Path, file: BinaryIO, largest: int) -> None:
        self._path = path
        self._file = file
        self._largest = largest
        self._size = 0

    def __iter__(self) -> Iterator[bytes]:
        packed = self._file.read(_PIECE)
        pieces = self._unpacked(packed) if packed.startswith(_MAGIC) else self._plain(packed)
        for piece in pieces:
            self._size += len(piece)
            if self._size > self._largest:
                raise bad_field(str(self._path), "more text in it", f"at most {self._largest >> 20} MiB, which an option can raise")
            yield piece

    def _plain(self, piece: bytes) -> Iterator[bytes]:
        while piece:
            yield piece
            piece = self._file.read(_PIECE)

    def _unpacked(self, packed: bytes) -> Iterator[bytes]:
        """Members one after the other, as gzip files may have."""
        while packed:
            member = zlib.decompressobj(_GZIP)
            while not member.eof:
                if not packed:
                    packed = self._file.read(_PIECE)
                    if not packed:
                        raise _Cut
                try:
                    yield member.decompress(packed, _PIECE)
                except zlib.error as error:
                    raise InputError(f"{self._path}: damaged: not gzip data ({error})") from None
                packed = member.unconsumed_tail
            packed = member.unused_data or self._file.read(_PIECE)


class NewFile:
    """A context in which `file` is written under a name of its own beside the wanted one; `stand` moves it there.

    Without `stand` nothing of it is left. Every failure to open, write or move is an `InputError` that names the file.

    Attributes:
        file: open for writing.
    """

    def __init__(self, path: Path, *, force: bool = False) -> None:
        """Raises `InputError` where there is a file of that name already, unless forced."""
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
        """Put the written part on disk under its name; more may be written afterwards."""
        self.file.flush()
        os.fsync(self.file.fileno())
        refuse_to_overwrite(self._path, force=self._force)
        self._part.replace(self._path)

    def _unwritable(self, error: Exception) -> InputError:
        return InputError(f"{self._path}: cannot be written: {getattr(error, 'strerror', None) or error}")


def refuse_to_overwrite(path: Path, *, force: bool) -> None:
    """Raise `InputError` where there is a file of that name already, unless forced."""
    if not force and path.exists():
        raise bad_field(str(path), "a file of that name", "a new name, or --force to replace it")
