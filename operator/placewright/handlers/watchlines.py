"""Decodes the lines of Kopf's watches, and the answers to its requests, by msgspec.

A pod of 1.5 kB takes 7 µs instead of 17, twice a pod. The standard library decodes the text that msgspec refuses. So the same lines are
accepted, with the same values (`tests/handlers/test_watchlines.py`).
"""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from typing import Any

import aiohttp
import msgspec

from placewright.api.decode import shallow
from placewright.handlers.kopfparts import JSON, KopfPart


def loads(text: str) -> Any:
    """Decode a line as `json.loads` does.

    msgspec refuses NaN, infinities and halves of surrogate pairs, which `json` accepts: `json` decides about each line that msgspec
    refuses.

    Where the text nests deeper than a decoder goes, it is decoded without that part: one pod would end the watch of all pods.

    Args:
        text: one line of a watch, or a list.

    Raises:
        json.JSONDecodeError: the text is no JSON.
    """
    try:
        try:
            return msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeError):
            return json.loads(text)
    except RecursionError:
        return json.loads(shallow(text.encode(errors="surrogatepass")).decode(errors="surrogatepass"))


class KopfResponse(aiohttp.ClientResponse):
    """The answer to a request of Kopf, such as a list, whose JSON is decoded by `loads`."""

    async def json(self, **named: Any) -> Any:
        """Decode the body."""
        return await super().json(**{"loads": loads, **named})


class MsgspecJson:
    """Stands in for the module `json` where Kopf decodes watch lines, with the one function that Kopf calls there."""

    loads = staticmethod(loads)


def quick_decoding(part: KopfPart = JSON) -> AbstractContextManager[bool]:
    """Have Kopf decode watch lines by msgspec inside the block; where Kopf decodes in another way, leave it alone.

    Args:
        part: the name by which Kopf decodes; tests pass one of their own.
    """
    return part.replaced(lambda _: MsgspecJson)
