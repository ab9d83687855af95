"""Patches of plugins, as they reach the API server."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext

import pytest
from fake_api import FakeApi, answer, hang_up, refuse

from placewright.api.errors import PatchError
from placewright.kube.writers.objects import HttpObjectPatcher

PATH = "/apis/example.com/v1/namespaces/shop/quotas/team/status"


async def test_a_patch_is_sent_once_it_may_be_and_refusals_are_told() -> None:
    leads = [True]
    async with FakeApi() as api, api.client() as client:
        patcher = HttpObjectPatcher(client, lambda: leads[0])
        api.on(f"PATCH {PATH}", answer({}), refuse(409, "Conflict"))
        await patcher.patch(PATH, {"status": {"used": 3}}, "shop")
        (sent,) = api.asked("PATCH")
        assert (sent.headers["Content-Type"], sent.body) == ("application/merge-patch+json", {"status": {"used": 3}})
        with pytest.raises(PatchError, match=r"quotas/team/status.*409"):
            await patcher.patch(PATH, {}, "shop")
        leads[0] = False
        with pytest.raises(PatchError, match="not the active one"):
            await patcher.patch(PATH, {}, "shop")
        assert len(api.asked("PATCH")) == 2


@pytest.mark.parametrize(("metadata", "sent"), [({}, 2), ({"resourceVersion": "7"}, 1)], ids=["any version", "one version"])
async def test_a_patch_of_one_version_is_not_repeated_after_a_lost_answer(metadata: dict[str, str], sent: int) -> None:
    async with FakeApi() as api, api.client() as client:
        patcher = HttpObjectPatcher(client, lambda: True, sleep=lambda _: asyncio.sleep(0))
        api.on(f"PATCH {PATH}", hang_up(), answer({}))
        with nullcontext() if sent > 1 else pytest.raises(PatchError):
            await patcher.patch(PATH, {"metadata": metadata, "status": {"used": 3}}, "shop")
        assert len(api.asked("PATCH")) == sent
