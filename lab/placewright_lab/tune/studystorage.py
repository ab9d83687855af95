"""The storage of a shared search: Optuna's own storages, and their errors in one line.

A path, or `journal:///path`, is Optuna's journal file, which needs no server and works on a shared file system. Any other URL is a database
in SQLAlchemy's form: `sqlite:///file`, `postgresql://user@host/name`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from placewright.api.bad_input import InputError, bad_field
from placewright_lab.tune.weightsearch import optuna_library

_JOURNAL: Final = "journal://"
#: Fields of every line of a journal.
_BEGINNING: Final = b'{"op_code":'
_ALLOWED: Final = "a path, journal:///path, sqlite:///path, or the URL of a database, such as postgresql://user@host/name"
#: Names on PyPI of drivers whose module has another name.
_PACKAGES: Final = {"psycopg": "'psycopg[binary]'", "psycopg2": "psycopg2-binary", "mysqldb": "mysqlclient"}
#: Seconds that a worker waits for another's write to an SQLite file.
_SQLITE_SECONDS: Final = 60
#: Number of further looks, and seconds between them, for a worker that finds another one making the tables.
_BEGINNERS: Final = 10
_BEGINNER_SECONDS: Final = 0.5
#: Errors of Optuna, besides its own, for a file or a database with unknown content.
_NOT_OPTUNAS: Final = (OSError, ValueError, LookupError, TypeError, AttributeError, AssertionError)


def open_storage(text: str) -> Any:
    """Return Optuna's storage of that name. Raises `InputError` if it is missing, forbidden or no storage, or has no driver."""
    optuna = optuna_library()
    scheme, separator, _ = text.partition("://")
    if not separator or scheme == "journal":
        return _journal(optuna, _absolute(text.removeprefix(_JOURNAL)))
    if not scheme.partition("+")[0].isalnum():
        raise bad_field("--storage", scheme, _ALLOWED)
    with errors_in_a_line(text):
        return _database(optuna, text)


def _absolute(path: str) -> Path:
    """Return the absolute path, because the lock beside the file is a link to it."""
    if not path or "\0" in path:
        raise bad_field("--storage", path, _ALLOWED)
    return Path(path).absolute()


def _journal(optuna: Any, path: Path) -> Any:
    backends = import_module("optuna.storages.journal")
    with errors_in_a_line(str(path)):
        backend = backends.JournalFileBackend(str(path))
        _drop_half_line(path, backends.JournalFileSymlinkLock(str(path)))
        return optuna.storages.JournalStorage(backend)


def _drop_half_line(path: Path, lock: Any) -> None:
    """Remove the half line of a killed worker. All others would fail on it after a further write.

    A writer has the lock, so with the lock in our hand no line is still being written.
    """
    if _ends_well(path) or not _is_journal(path):
        return
    lock.acquire()
    try:
        if not _ends_well(path):
            text = path.read_bytes()
            os.truncate(path, text.rfind(b"\n") + 1)
    finally:
        lock.release()


def _is_journal(path: Path) -> bool:
    """Return whether the file begins like Optuna's journals. Any other file was named by mistake, and stays unchanged."""
    with path.open("rb") as file:
        return file.read(len(_BEGINNING)) == _BEGINNING


def _ends_well(path: Path) -> bool:
    with path.open("rb") as file:
        if not file.seek(0, os.SEEK_END):
            return True
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def _database(optuna: Any, url: str) -> Any:
    waits = {"connect_args": {"timeout": _SQLITE_SECONDS}} if url.startswith("sqlite") else {}
    errors = import_module("sqlalchemy.exc")
    try:
        for _ in range(_BEGINNERS):
            try:
                return optuna.storages.RDBStorage(url, engine_kwargs=waits)
            except errors.DBAPIError as error:
                if not isinstance(error, errors.IntegrityError) and "already exists" not in str(error):
                    raise
                time.sleep(_BEGINNER_SECONDS)  # another worker, which began at the same time, is making the tables
        return optuna.storages.RDBStorage(url, engine_kwargs=waits)
    except ImportError:
        driver = import_module("sqlalchemy").make_url(url).get_dialect().driver
        package = _PACKAGES.get(driver, driver)
        raise InputError(f"--storage {without_password(url)}: the driver {driver} is not installed: pip install {package}") from None


@contextmanager
def errors_in_a_line(storage: str) -> Iterator[None]:
    """Turn errors of the storage into an `InputError` of one line, without its password."""
    optuna, sqlalchemy = optuna_library(), import_module("sqlalchemy.exc")
    try:
        yield
    except (optuna.exceptions.OptunaError, sqlalchemy.SQLAlchemyError, *_NOT_OPTUNAS) as error:
        raise InputError(f"--storage {without_password(storage)}: {_why(error)}") from None


def _why(error: BaseException) -> str:
    """Return the innermost message, because libraries wrap the database's own."""
    cause: BaseException = error
    while (inner := getattr(cause, "orig", None) or cause.__cause__) is not None:
        cause = inner
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror
    if isinstance(cause, _NOT_OPTUNAS) and not isinstance(cause, OSError):
        return "it holds what Optuna did not write, or was cut off in the middle"
    said = str(cause).strip().splitlines()
    return said[0] if said else type(cause).__name__


def without_password(storage: str) -> str:
    """Return the URL for people, without its password."""
    scheme, separator, rest = storage.partition("://")
    if not separator or "@" not in rest:
        return storage
    user, _, host = rest.rpartition("@")
    return f"{scheme}://{user.partition(':')[0]}@{host}"
