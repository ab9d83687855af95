"""A file that comes to stand under its name only when it is worth something, and that its owner alone may read."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from placewright.api.bad_input import InputError, bad_field

_OWNER_ONLY: Final = 0o600


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
        """What was written is on disk, and has the name; more may be written afterwards."""
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
