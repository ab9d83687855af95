"""One Chromium for all tests that look at a page; each has a tab of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from browser import running


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port on which it can be told what to do."""
    with running(tmp_path_factory.mktemp("chromium")) as port:
        yield port
