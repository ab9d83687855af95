"""What a write leaves in the store that no request shows; what requests show is asked in tests/contract."""

from __future__ import annotations

import pytest

from kubesandbox.edits.patches import PatchRequest
from kubesandbox.status import ApiError
from kubesandbox.storage.writes import WriteOptions
from lab.sandbox.makers import Core, a_pod


def test_a_failed_write_leaves_the_stored_object_untouched() -> None:
    core = Core()
    core.create("pods", a_pod("web", labels={"a": "b"}))
    before = core.store.get(("", "pods"), "default", "web")
    assert before is not None
    copy = before.encoded
    for bad in ({"spec": {"nodeName": "x"}}, {"metadata": {"labels": {"a": 1}}}, {"metadata": {"uid": "other"}}):
        with pytest.raises(ApiError):
            core.writes.patch(core.type("pods"), "default", "web", PatchRequest(bad, "application/merge-patch+json"), WriteOptions())
    assert before.encoded == copy
    assert before.object == core.get("pods", "web")
