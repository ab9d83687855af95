"""Host ports in use, by port and row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from placewright.api.counts import add_count
from placewright.api.pods import ANY_ADDRESS, HostPort


class HostPorts:
    """The claims to each host port, by row. Pods with host ports are few, so this is an index and not a column."""

    def __init__(self) -> None:
        #: Number of claims, by port, address and row; never 0.
        self._claims: dict[tuple[str, int], dict[str, dict[int, int]]] = {}

    def add(self, ports: Sequence[HostPort], row: int, delta: int) -> None:
        """Claim or release ports on a row."""
        for protocol, port, address in ports:
            addresses = self._claims.setdefault((protocol, port), {})
            rows = addresses.setdefault(address, {})
            if not add_count(rows, row, delta) and not rows:
                del addresses[address]
            if not addresses:
                del self._claims[protocol, port]

    def free(self, ports: Sequence[HostPort], rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return True for rows on which none of these ports is taken; shape (len(rows),).

        Two claims of one port conflict when their addresses are equal or one of them is the wildcard. Only claims of these
        ports are looked at.
        """
        taken: set[int] = set()
        for protocol, port, address in ports:
            addresses = self._claims.get((protocol, port))
            if addresses is None:
                continue
            # A claim on the wildcard conflicts with every address of the port, and every claim with one on the wildcard.
            for other in addresses if address == ANY_ADDRESS else (address, ANY_ADDRESS):
                taken.update(addresses.get(other, ()))
        if not taken:
            return np.ones(len(rows), np.bool_)
        return ~np.isin(rows, np.fromiter(taken, np.intp, len(taken)))
