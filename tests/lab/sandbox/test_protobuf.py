"""Bodies in protobuf, as typed Go clients send them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesandbox.web.protobuf import ProtobufError, decode_protobuf


def part(number: int, content: bytes | str | int) -> bytes:
    """Encode one short field."""
    if isinstance(content, int):
        return bytes([number << 3, content])
    data = content.encode() if isinstance(content, str) else content
    return bytes([number << 3 | 2, len(data)]) + data


def body(api_version: str, kind: str, raw: bytes) -> bytes:
    return b"k8s\x00" + part(1, part(1, api_version) + part(2, kind)) + part(2, raw)


def test_a_namespace_is_read() -> None:
    metadata = part(1, "team") + part(11, part(1, "a") + part(2, "b")) + part(11, part(1, "c") + part(2, "d")) + part(8, b"")
    sent = body("v1", "Namespace", part(1, metadata) + part(2, b"") + part(9, b""))
    assert decode_protobuf(sent) == {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "team", "labels": {"a": "b", "c": "d"}, "creationTimestamp": None},
        "spec": {},
    }


def test_an_eviction_with_options_is_read() -> None:
    options = part(1, 5) + part(2, part(1, "some-uid")) + part(5, "All")
    found = decode_protobuf(body("policy/v1", "Eviction", part(1, part(1, "p") + part(3, "ns")) + part(2, options)))
    assert found["metadata"] == {"name": "p", "namespace": "ns"}
    assert found["deleteOptions"] == {
        "gracePeriodSeconds": 5,
        "preconditions": {"uid": "some-uid"},
        "dryRun": ["All"],
    }


def test_zero_and_false_are_said_and_empty_text_is_not() -> None:
    found = decode_protobuf(body("v1", "DeleteOptions", part(1, 0) + part(3, 0) + part(4, "")))
    assert found == {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0, "orphanDependents": False}


def test_a_negative_number_is_read() -> None:
    minus_one = bytes([2 << 3]) + b"\xff" * 9 + b"\x01"
    assert decode_protobuf(body("scheduling.k8s.io/v1", "PriorityClass", minus_one))["value"] == -1


def test_numbers_and_texts_of_a_budget() -> None:
    spec = part(1, part(1, 0) + part(2, 2)) + part(3, part(1, 1) + part(3, "50%")) + part(2, part(1, part(1, "a") + part(2, "b")))
    found = decode_protobuf(body("policy/v1", "PodDisruptionBudget", part(2, spec)))
    assert found["spec"] == {"minAvailable": 2, "maxUnavailable": "50%", "selector": {"matchLabels": {"a": "b"}}}


def test_a_deployment_as_kubectl_creates_it_is_read() -> None:
    amount = part(1, part(1, "cpu") + part(2, part(1, "100m")))
    container = part(1, "app") + part(2, "app:1") + part(6, part(1, "") + part(2, 0) + part(3, 80)) + part(8, amount)
    pod = part(2, container) + part(3, "") + part(11, 0)
    spec = part(1, 2) + part(2, part(1, part(1, "app") + part(2, "web"))) + part(3, part(2, pod)) + part(4, part(1, ""))
    found = decode_protobuf(body("apps/v1", "Deployment", part(1, part(1, "web")) + part(2, spec) + part(3, b"\x08\x00")))
    ports = [{"hostPort": 0, "containerPort": 80}]
    wanted = {"name": "app", "image": "app:1", "ports": ports, "resources": {"limits": {"cpu": "100m"}}}
    assert found["spec"]["template"]["spec"] == {"containers": [wanted]}
    assert found["spec"]["selector"] == {"matchLabels": {"app": "web"}}
    assert "status" not in found


def test_content_that_is_not_known_is_refused_and_not_dropped() -> None:
    host_network = part(2, part(3, part(2, part(11, 1))))
    with pytest.raises(ProtobufError, match="field 11 beside containers"):
        decode_protobuf(body("apps/v1", "Deployment", host_network))


def test_the_bytes_of_a_secret_stay_base64() -> None:
    found = decode_protobuf(body("v1", "Secret", part(2, part(1, "a") + part(2, b"\xff\x00")) + part(3, "Opaque")))
    assert (found["data"], found["type"]) == ({"a": "/wA="}, "Opaque")


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"{}",
        b"k8s\x00",
        b"k8s\x00\x0a",
        b"k8s\x00\x0a\x7f",
        b"k8s\x00" + b"\xff" * 20,
        body("v1", "Pod", b""),
        body("v1", "Namespace", b"\x0a\x7f"),
        body("v1", "Namespace", part(1, 5)),
        body("v1", "DeleteOptions", part(1, "x")),
        body("v1", "Namespace", part(1, part(1, b"\xff\xfe"))),
        body("v1", "Namespace", part(1, part(8, b"\x08" + b"\xff" * 8 + b"\x7f"))),
    ],
)
def test_what_is_broken_or_unknown_is_refused(broken: bytes) -> None:
    with pytest.raises(ProtobufError):
        decode_protobuf(broken)


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(noise: bytes) -> None:
    for sent in (b"k8s\x00" + noise, body("v1", "Namespace", noise)):
        assert isinstance(outcome(sent), dict | ProtobufError)


def outcome(sent: bytes) -> object:
    """Return the object, or the refusal."""
    try:
        return decode_protobuf(sent)
    except ProtobufError as refused:
        return refused
