"""Tables: cells, ages, and the paths of printer columns."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesandbox.web.columns import age, columns_of, duration
from kubesandbox.web.jsonpath import JsonPath, JsonPathError
from kubesandbox.web.objects import table

NOW = 1_767_225_600.0  # 2026-01-01T00:00:00Z
KINDS = [
    "Pod",
    "Node",
    "Event",
    "Deployment",
    "ConfigMap",
    "Lease",
    "ResourceClaim",
    "ResourceSlice",
    "Unheard",
]


def row(kind: str, obj: dict[str, Any], columns: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    found = table(columns_of(kind, columns), [obj], include_object="None", now=NOW, metadata={"resourceVersion": "1"})
    names = [column["name"] for column in found["columnDefinitions"]]
    return dict(zip(names, found["rows"][0]["cells"], strict=True))


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (599, "9m59s"),
        (600, "10m"),
        (10_799, "179m"),
        (10_800, "3h"),
        (11_100, "3h5m"),
        (28_800, "8h"),
        (172_799, "47h"),
        (172_800, "2d"),
        (176_400, "2d1h"),
        (691_200, "8d"),
        (63_072_000, "2y"),
        (63_158_400, "2y1d"),
        (252_288_000, "8y"),
    ],
)
def test_spans_get_coarser_as_they_grow(seconds: int, shown: str) -> None:
    assert duration(seconds) == shown


def test_an_age_counts_from_the_timestamp_and_never_from_the_future() -> None:
    assert age("2025-12-31T23:59:30Z", NOW) == "30s"
    assert age("2025-12-31T23:59:30.123456Z", NOW) == "30s"
    assert age("2026-02-01T00:00:00Z", NOW) == "0s"
    assert age("soon", NOW) == "<unknown>"
    assert age(None, NOW) == "<unknown>"


DOCUMENT = {
    "spec": {"hosts": ["a", "b"], "my-key": 1},
    "metadata": {"labels": {"app.kubernetes.io/name": "x"}},
    "status": {
        "conditions": [
            {"type": "Ready", "status": "True"},
            {"type": "Stalled", "status": "False"},
        ]
    },
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.hosts[0]", ["a"]),
        (".spec.hosts[-1]", ["b"]),
        (".spec.hosts[9]", []),
        (".spec.hosts[*]", ["a", "b"]),
        (".spec['my-key']", [1]),
        ("{.spec.my-key}", [1]),
        (r".metadata.labels.app\.kubernetes\.io/name", ["x"]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        ("$.status.conditions[?(@.type=='Stalled')].status", ["False"]),
        (".nothing.at.all", []),
        (".spec.hosts.name", []),
    ],
)
def test_paths_find_what_they_name(path: str, found: list[Any]) -> None:
    assert JsonPath(path).find(DOCUMENT) == found


@pytest.mark.parametrize("path", ["spec", ".a[", ".a[?(]", ".a[?()]", "..", ".a[b]", ".a[?(b=='c')]", ".a[?(@.b>1)]"])
def test_a_path_that_makes_no_sense_is_refused(path: str) -> None:
    with pytest.raises(JsonPathError):
        JsonPath(path)


def container(name: str, **state: Any) -> dict[str, Any]:
    return {"name": name, "ready": False, "restartCount": 0, "state": state}


@pytest.mark.parametrize(
    ("pod", "shown"),
    [
        ({"status": {"phase": "Pending"}}, "Pending"),
        ({"status": {"phase": "Failed", "reason": "Evicted"}}, "Evicted"),
        ({"status": {"containerStatuses": [container("a", waiting={"reason": "ErrImagePull"})]}}, "ErrImagePull"),
        ({"status": {"containerStatuses": [container("a", terminated={"exitCode": 0, "reason": "Completed"})]}}, "Completed"),
        ({"metadata": {"deletionTimestamp": "x"}, "status": {"phase": "Running"}}, "Terminating"),
        ({"metadata": {"deletionTimestamp": "x"}, "status": {"phase": "Succeeded", "reason": "Done"}}, "Done"),
        ({"status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]}}, "SchedulingGated"),
    ],
)
def test_the_state_of_a_pod_in_a_word(pod: dict[str, Any], shown: str) -> None:
    assert row("Pod", pod)["Status"] == shown


def test_a_nodes_roles_and_state() -> None:
    node = {
        "metadata": {"labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "edge"}},
        "spec": {"unschedulable": True},
        "status": {"conditions": [{"type": "Ready", "status": "False"}]},
    }
    shown = row("Node", node)
    assert (shown["Status"], shown["Roles"]) == ("NotReady,SchedulingDisabled", "edge,worker")


def test_a_deployment_counts_what_is_ready() -> None:
    shown = row("Deployment", {"spec": {"replicas": 3}, "status": {"readyReplicas": 1, "updatedReplicas": 2}})
    assert (shown["Ready"], shown["Up-to-date"], shown["Available"]) == ("1/3", 2, 0)


def test_a_kind_without_columns_of_its_own_is_shown_with_name_and_age() -> None:
    obj = {"metadata": {"name": "web", "creationTimestamp": "2025-12-31T23:59:30Z"}, "status": {"readyReplicas": 1}}
    assert row("ReplicaSet", obj) == {"Name": "web", "Age": "30s"}


def test_an_event_shows_its_object_in_either_groups_words() -> None:
    core = {
        "involvedObject": {"kind": "Pod", "name": "p"},
        "message": "hello\n",
        "lastTimestamp": "2025-12-31T23:59:58Z",
    }
    modern = {"regarding": {"kind": "Pod", "name": "p"}, "note": "hello", "eventTime": "2025-12-31T23:59:58.5Z"}
    for event in (core, modern):
        shown = row("Event", event)
        assert (shown["Object"], shown["Message"], shown["Last Seen"]) == ("pod/p", "hello", "2s")


def test_printer_columns_show_values_of_their_declared_type_only() -> None:
    columns = [
        {"name": "Text", "type": "string", "jsonPath": ".spec"},
        {"name": "Number", "type": "integer", "jsonPath": ".spec.text"},
        {"name": "When", "type": "date", "jsonPath": ".when"},
        {"name": "Wrong", "type": "string", "jsonPath": "not a path"},
        {"name": "Yes", "type": "boolean", "jsonPath": ".yes"},
    ]
    shown = row("Box", {"metadata": {"name": "b"}, "spec": {"text": "x"}, "when": "2025-12-31T23:59:58Z", "yes": True}, columns)
    expected = {"Name": "b", "Text": '{"text":"x"}', "Number": None, "When": "2s", "Wrong": None, "Yes": True}
    assert shown == expected


anything = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda below: (
        st.lists(below, max_size=2)
        | st.dictionaries(
            st.sampled_from(["conditions", "containers", "template", "labels", "type", "spec", "state", "ports", "reason"]),
            below,
        )
    ),
)


@settings(max_examples=60)
@given(metadata=anything, spec=anything, status=anything)
def test_an_object_of_any_shape_makes_a_row_of_every_kind(metadata: Any, spec: Any, status: Any) -> None:
    for kind in KINDS:
        assert len(row(kind, {"metadata": metadata, "spec": spec, "status": status})) == len(columns_of(kind, None)), kind
