"""Made-up names put back: to compare what is said of an anonymised cluster with what is said of the real one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from placewright.api.decode import decode
from placewright.offline.world import struct_of
from placewright_console.local.prunedobjects import manifest_line, pruned
from placewright_lab.snapshots.anonymiser import Mask

Body = dict[str, Any]
KEY: Final = b"a key for tests"


def as_saved(objects: Sequence[Mapping[str, Any]]) -> list[bytes]:
    """Return the lines of a snapshot of these objects, without kinds that a snapshot does not have."""
    known = [(each, struct) for each in objects if (struct := struct_of(each.get("apiVersion"), each["kind"])) is not None]
    return [manifest_line(pruned(decode(msgspec.json.encode(each), struct))) for each, struct in known]


def _remembering(method: str) -> Callable[..., str]:
    """A method that makes up a text for its last argument, and remembers which."""

    def made_up(self: RememberingMask, *told: str) -> str:
        made: str = getattr(Mask, method)(self, *told)
        self.real[made] = told[-1]
        return made

    return made_up


class RememberingMask(Mask):
    """A mask that remembers the real text for each made-up one."""

    def __init__(self, objects: Sequence[Body], key: bytes = KEY) -> None:
        self.real: dict[str, str] = {}
        super().__init__(key, objects)

    name, text, claim, label_key, label_value = map(_remembering, ("name", "text", "claim", "label_key", "label_value"))

    def put_back(self, said: Any) -> Any:
        """The same with real names wherever a text holds made-up ones; words of a message in no order, as names decide it."""
        if isinstance(said, dict):
            return {self.put_back(key): self.put_back(value) for key, value in said.items()}
        if isinstance(said, list):
            return sorted((self.put_back(each) for each in said), key=repr)
        if not isinstance(said, str):
            return said
        for made in sorted((each for each in self.real if each and each in said), key=len, reverse=True):
            said = said.replace(made, self.real[made])
        return " ".join(sorted(re.split(r"[\s,.]+", said))) if " " in said else said


def in_no_order(said: Any) -> Any:
    """An answer about the real cluster, made comparable with one that was put back."""
    return RememberingMask([]).put_back(said)
