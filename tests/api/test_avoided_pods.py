"""The annotation by which a node names the controllers whose pods it would rather not have."""

from __future__ import annotations

import pytest

from placewright.api.avoidedpods import ANNOTATION, Controller, avoided_by
from placewright.api.decode import convert
from placewright.api.objects import Node


@pytest.mark.parametrize(
    ("value", "avoided"),
    [
        ('{"preferAvoidPods": [{"podSignature": {"podController": {"kind": "ReplicaSet", "uid": "u"}}}]}', {("ReplicaSet", "u")}),
        ('{"preferAvoidPods": [{}, {"podSignature": {}}]}', set()),
        ('{"preferAvoidPods": [{"podSignature": {"podController": {"uid": "u"}}}, {"reason": 1}]}', set()),
        ("no JSON", set()),
        ("", set()),
    ],
)
def test_one_wrong_field_and_a_node_avoids_no_controller(value: str, avoided: set[tuple[str, str]]) -> None:
    node = convert({"metadata": {"name": "n", "annotations": {ANNOTATION: value}}}, Node)
    assert avoided_by(node) == {Controller(*each) for each in avoided}
