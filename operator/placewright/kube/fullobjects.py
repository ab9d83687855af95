"""Pods and nodes whole, as the API server has them: extenders are sent all of an object, not the few fields that scheduling reads."""

from __future__ import annotations

from placewright.kube.client import ApiClient


class FullObjects:
    """Whole objects for extenders; one for the whole program. To be closed."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def close(self) -> None:
        """Stop following the nodes."""
