"""The namespaces that a reader of the console may see.

Readers with equal rights form a class: the feed encodes each change once for a class. A pod of any other namespace reaches the reader in
sums alone. Its name, its namespace, and texts about it, which may quote names, do not.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Rights:
    """A class of rights.

    Example:
        Rights.of(["shop", "web"]).may_see("shop")   # True

    Attributes:
        namespaces: namespaces of the pods that may be read; None for all.
    """

    namespaces: frozenset[str] | None = None

    @classmethod
    def of(cls, namespaces: Collection[str]) -> Rights:
        """Make the class of readers of these namespaces.

        Args:
            namespaces: may be empty, for readers of sums.

        Returns:
            The class.
        """
        return cls(frozenset(namespaces))

    def may_see(self, namespace: str) -> bool:
        """Return whether pods of a namespace may be seen by name."""
        return self.namespaces is None or namespace in self.namespaces


#: The rights of a person who may read pods in all namespaces, as the owner of a snapshot does.
ALL_NAMESPACES: Final = Rights()
