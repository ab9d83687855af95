"""Host ports in use, by port and by row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from placewright.api.pods import ANY_ADDRESS, HostPort


class HostPorts:
    """Who claims which port on which row. Pods with host ports are few, so this is an index and not a column."""

    def __init__(self) -> None:
        self._claims: dict[tuple[str, int], dict[int, dict[str, int]]] = {}

    def add(self, ports: Sequence[HostPort], row: int, delta: int) -> None:
        """Claim (`delta` 1) or release (-1) ports on a row."""
        for protocol, port, address in ports:
            rows = self._claims.setdefault((protocol, port), {})
            addresses = rows.setdefault(row, {})
            addresses[address] = addresses.get(address, 0) + delta
            if addresses[address] == 0:
                del addresses[address]
            if not addresses:
                del rows[row]
            if not rows:
                del self._claims[protocol, port]

    def free(self, ports: Sequence[HostPort], rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """True where none of these ports is taken; shape (len(rows),).

        Two claims of one port conflict when their addresses are equal or either is the wildcard.
        """
        taken: set[int] = set()
        for protocol, port, address in ports:
            for row, addresses in self._claims.get((protocol, port), {}).items():
                if address == ANY_ADDRESS or address in addresses or ANY_ADDRESS in addresses:
                    taken.add(row)
        if not taken:
            return np.ones(len(rows), np.bool_)
        return ~np.isin(rows, np.fromiter(taken, np.intp, len(taken)))
