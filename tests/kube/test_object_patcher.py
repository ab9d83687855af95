"""Patches of plugins, as they reach the API server."""

from __future__ import annotations

import pytest
from fake_api import FakeApi, answer, refuse

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
