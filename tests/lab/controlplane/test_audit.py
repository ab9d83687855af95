"""The audit log is read as it is, torn lines included, and answers what it can."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lab.controlplane.onceaudit import BindingRequest, binding_requests, exactly_once
from placewright.api.objects import NodeName, PodKey
from placewright_lab.controlplane.audit import Record, denied, read_records

USER = "system:serviceaccount:placewright-system:placewright"


def line(verb: str = "create", code: int = 201, user: str = USER, **more: Any) -> bytes:
    record = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "stage": "ResponseComplete",
        "requestURI": "/api/v1/pods",
        "verb": verb,
        "user": {"username": user, "groups": ["system:authenticated"]},
        "responseStatus": {"metadata": {}, "code": code},
        **more,
    }
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def bound(name: str, node: str, code: int = 201) -> bytes:
    asked = {"kind": "Binding", "metadata": {"name": name, "uid": f"uid-{name}"}, "target": {"kind": "Node", "name": node}}
    about = {"resource": "pods", "subresource": "binding", "namespace": "default", "name": name}
    return line(code=code, objectRef=about, requestObject=asked)


def records(folder: Path, *lines: bytes) -> list[Record]:
    log = folder / "audit.log"
    log.write_bytes(b"".join(lines))
    return read_records(log)


def request(node: str, code: int = 201, uid: str = "a") -> BindingRequest:
    return BindingRequest(PodKey("default/web"), uid, NodeName(node), code)


def test_a_half_written_last_line_is_left_out(tmp_path: Path) -> None:
    assert [each.verb for each in records(tmp_path, line("get"), line("list")[:-40])] == ["get"]


def test_a_line_begun_by_a_killed_server_costs_not_the_next_server_s_first(tmp_path: Path) -> None:
    assert [each.verb for each in records(tmp_path, line("get"), line("list")[:-40], line("watch"), line("patch"))] == [
        "get", "watch", "patch",
    ]  # fmt: skip


def test_reading_begins_at_an_offset(tmp_path: Path) -> None:
    first = line("get")
    records(tmp_path, first, line("list"))
    assert [each.verb for each in read_records(tmp_path / "audit.log", len(first))] == ["list"]


def test_a_binding_is_read_with_pod_uid_node_and_answer(tmp_path: Path) -> None:
    found = binding_requests(records(tmp_path, line(), bound("web", "node-1", 409)))
    assert found == [BindingRequest(PodKey("default/web"), "uid-web", NodeName("node-1"), 409)]


def test_a_request_that_rbac_forbade_is_denied_and_one_that_admission_forbade_is_not(tmp_path: Path) -> None:
    by_rbac = line("list", 403, annotations={"authorization.k8s.io/decision": "forbid"})
    by_admission = line("create", 403, annotations={"authorization.k8s.io/decision": "allow"})
    of_somebody_else = line("get", 403, user="somebody")
    unknown = line("watch", 401, user="")
    found = denied(records(tmp_path, by_rbac, by_admission, of_somebody_else, unknown, line()), USER)
    assert [each.verb for each in found] == ["list", "watch"]


def test_each_pod_bound_once_where_it_is_has_no_fault() -> None:
    audit = exactly_once([request("one"), request("two", uid="b")], {"a": NodeName("one"), "b": NodeName("two"), "c": NodeName("")})
    assert (audit.faults, audit.unexplained, audit.refused) == ((), (), ())


def test_a_pod_bound_twice_is_a_fault() -> None:
    (fault,) = exactly_once([request("one"), request("two")], {"a": NodeName("one")}).faults
    assert fault == "pod default/web was bound 2 times: to one, two"


def test_a_pod_elsewhere_than_its_binding_says_is_a_fault() -> None:
    (fault,) = exactly_once([request("one")], {"a": NodeName("")}).faults
    assert fault == "pod default/web was bound to one, and is on no node"


def test_a_pod_that_is_gone_is_no_fault() -> None:
    assert exactly_once([request("one")], {}).faults == ()


def test_a_refused_binding_explains_nothing() -> None:
    audit = exactly_once([request("one", 404)], {"a": NodeName("one")})
    assert audit.unexplained == ("a",)
    assert audit.refused == (request("one", 404),)


@pytest.mark.parametrize("code", [0, 409, 504])
def test_an_answer_that_leaves_it_open_explains_a_pod_on_that_node_and_on_no_other(code: int) -> None:
    assert exactly_once([request("one", code)], {"a": NodeName("one")}).unexplained == ()
    assert exactly_once([request("one", code)], {"a": NodeName("two")}).unexplained == ("a",)
