"""The files of the console's pages: hand-written, with nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

#: Bytes of all files together, each packed by gzip: what a first visit costs.
MOST_PACKED_BYTES: Final = 90_000
_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_INDEX: Final = "index.html"


class StaticPage(NamedTuple):
    """A file as it is served.

    Attributes:
        body: its bytes.
        content_type: the media type.
    """

    body: bytes
    content_type: str


@cache
def static_pages() -> Mapping[str, StaticPage]:
    """Read all files of the pages, once.

    Returns:
        By path below the console's own; the empty path is the index.
    """
    found = {}
    for file in files(__package__).joinpath("static").iterdir():
        media_type = _TYPES.get(file.name.rpartition(".")[2])
        if media_type is not None:
            found[file.name] = StaticPage(file.read_bytes(), media_type)
    found[""] = found[_INDEX]
    return found
