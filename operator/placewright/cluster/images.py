"""Container images by name: their sizes, and the rows that have them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from placewright.api.objects import ContainerImage


class ImageState(NamedTuple):
    """One image name.

    Attributes:
        size: bytes; the first size seen, as in kube-scheduler's `imageStates`.
        rows: the rows that have the image, as keys.
    """

    size: int
    rows: dict[int, None]


class Images:
    """An index from image name to rows.

    Attributes:
        version: grows when an image appears on a row or leaves it.
    """

    def __init__(self) -> None:
        self.version = 0
        self._states: dict[str, ImageState] = {}
        self._on_row: dict[int, dict[str, int]] = {}

    def set_row(self, row: int, images: Iterable[ContainerImage]) -> None:
        """Replace the images of a row."""
        present = {name: image.size_bytes for image in images for name in image.names or ()}
        before = self._on_row.get(row, {})
        # A node's status repeats its images with every update. Only a change may invalidate scores that are kept.
        if present.keys() == before.keys():
            return
        self.version += 1
        for name in before.keys() - present.keys():
            self._leave(name, row)
        for name, size in present.items():
            self._states.setdefault(name, ImageState(size, {})).rows[row] = None
        self._on_row[row] = present

    def get(self, name: str) -> ImageState | None:
        """Find an image.

        Returns:
            Its size and rows; None when no node has it.
        """
        return self._states.get(name)

    def _leave(self, name: str, row: int) -> None:
        state = self._states[name]
        state.rows.pop(row, None)
        if not state.rows:
            del self._states[name]
