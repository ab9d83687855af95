"""Lists in pages: what of them is kept; what they show is asked in tests/contract."""

from __future__ import annotations

import pytest

from kubesandbox.status import ApiError
from kubesandbox.storage import reads as module
from kubesandbox.storage.reads import ListOptions, Page
from lab.sandbox.makers import Core, config_map


def page(core: Core, limit: int = 0, token: str = "", **options: str) -> Page:
    return core.reads.page(core.type("configmaps"), "default", None, ListOptions(limit=limit, token=token, **options))


def names(found: Page) -> list[str]:
    return [each.name for each in found.objects]


def filled(count: int) -> Core:
    core = Core()
    for number in range(count):
        core.create("configmaps", config_map(f"m{number}"))
    return core


def test_unfinished_lists_are_not_kept_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_SNAPSHOTS", 2)
    core = filled(3)
    tokens = [page(core, limit=1).token for _ in range(3)]
    with pytest.raises(ApiError) as caught:
        page(core, token=tokens[0])
    assert caught.value.code == 410
    assert names(page(core, token=tokens[2])) == ["m1", "m2"]
