"""Lists in pages: one snapshot, whatever is written meanwhile."""

from __future__ import annotations

import msgspec
import pytest

from placewright.sandbox import reads as module
from placewright.sandbox.reads import ListOptions, Page, plain_view
from placewright.sandbox.status import ApiError
from sandbox.makers import Core, config_map


def page(core: Core, limit: int = 0, token: str = "", **options: str) -> Page:
    return core.reads.page(core.type("configmaps"), "default", None, ListOptions(limit=limit, token=token, **options))


def names(found: Page) -> list[str]:
    return [each.name for each in found.objects]


def filled(count: int) -> Core:
    core = Core()
    for number in range(count):
        core.create("configmaps", config_map(f"m{number}"))
    return core


def test_pages_show_one_moment_however_the_objects_change() -> None:
    core = filled(5)
    first = page(core, limit=2)
    version = core.store.version
    core.create("configmaps", config_map("m00"))
    core.writes.delete(core.type("configmaps"), "default", "m3")
    second = page(core, limit=2, token=first.token)
    third = page(core, limit=2, token=second.token)
    assert names(first) + names(second) + names(third) == ["m0", "m1", "m2", "m3", "m4"]
    assert {first.version, second.version, third.version} == {version}
    assert (first.remaining, second.remaining, third.token) == (3, 1, "")


def test_a_page_can_be_asked_for_again() -> None:
    core = filled(3)
    first = page(core, limit=1)
    assert names(page(core, limit=1, token=first.token)) == names(page(core, limit=1, token=first.token)) == ["m1"]


def test_a_list_that_fits_has_no_token() -> None:
    assert page(filled(2), limit=2).token == ""


def test_a_token_from_before_a_compaction_has_expired() -> None:
    core = filled(3)
    token = page(core, limit=1).token
    core.create("configmaps", config_map("later"))
    core.store.compact()
    with pytest.raises(ApiError) as caught:
        page(core, limit=1, token=token)
    assert (caught.value.code, caught.value.reason) == (410, "Expired")


def test_unfinished_lists_are_not_kept_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_SNAPSHOTS", 2)
    core = filled(3)
    tokens = [page(core, limit=1).token for _ in range(3)]
    with pytest.raises(ApiError) as caught:
        page(core, token=tokens[0])
    assert caught.value.code == 410
    assert names(page(core, token=tokens[2])) == ["m1", "m2"]


@pytest.mark.parametrize("token", ["x", "e30=", "????", "bnVsbA==", "eyJzbmFwc2hvdCI6MSwic3RhcnQiOi01fQ==", "é"])
def test_a_token_that_is_none_is_refused(token: str) -> None:
    with pytest.raises(ApiError) as caught:
        page(filled(3), limit=1, token=token)
    assert caught.value.code in (400, 410)


def test_a_version_from_the_future_is_told_to_wait() -> None:
    core = filled(1)
    with pytest.raises(ApiError) as caught:
        page(core, version=str(core.store.version + 1))
    assert (caught.value.code, caught.value.retry_after) == (504, 1)


def test_items_of_built_in_lists_do_not_say_their_kind() -> None:
    core = filled(2)
    view = plain_view(core.type("configmaps"))
    shown = msgspec.json.decode(core.reads.encode_page(view, page(core)))
    assert (shown["kind"], shown["apiVersion"]) == ("ConfigMapList", "v1")
    assert [sorted(item) for item in shown["items"]] == [["metadata"]] * 2
    assert msgspec.json.decode(core.reads.encode_page(view, Page([], 5)))["items"] == []
