"""How objects are shown: as they are, as rows of a Table (kubectl get), or as metadata only."""

from __future__ import annotations

from .queries import Query
from .reads import Page, Reads, plain_view
from .resources import ResourceType
from .watches import View


class Views:
    """The views of one server; plain ones are made once a type."""

    def __init__(self, reads: Reads) -> None:
        self._reads = reads
        self._plain: dict[ResourceType, View] = {}

    def plain(self, resource: ResourceType) -> View:
        """Objects as they are."""
        view = self._plain.get(resource)
        if view is None:
            view = self._plain[resource] = plain_view(resource)
        return view

    def choose(self, resource: ResourceType, accept: str, query: Query) -> View:
        """The view that an Accept header asks for."""
        return self.plain(resource)

    def encode_page(self, view: View, page: Page, accept: str, query: Query) -> bytes:
        """The JSON of a list in this view."""
        return self._reads.encode_page(view, page)
