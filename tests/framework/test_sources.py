"""What a plugin declares to be read for it: refused where it could not be read, and said once for plugins that share it."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import msgspec
import pytest

from kubesandbox.storage.selectors import parse_labels
from placewright.api.objects import KubeObject, LabelSelector, ObjectMeta, Requirement
from placewright.api.workloads import Service
from placewright.cluster.cluster import Cluster
from placewright.engine.discovery import reflected_rows
from placewright.engine.permissions import declared_needs
from placewright.framework.errors import PluginRegistrationError
from placewright.framework.events import Action, ClusterEvent, event_with_hint
from placewright.framework.interface import Plugin
from placewright.framework.registry import Registry
from placewright.framework.sources import ObjectFollower, ObjectSource
from placewright.kube.discovery import REFLECTED


class Quota(KubeObject, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    pods: int = 0


class Bare(msgspec.Struct):
    name: str = ""


QUOTAS = ObjectSource(Quota, "example.com", "quotas", ("v1", "v1beta1"), namespaced=True)


def plugin(name: str, *sources: ObjectSource[Any]) -> type[Plugin]:
    return type(name, (Plugin,), {"name": name, "sources": sources})


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"kind": Bare}, "Bare: the struct needs a field metadata: ObjectMeta"),
        ({"kind": Service}, "Service: a kind of this name is the scheduler's own"),
        ({"resource": ""}, "Quota: resource and versions are needed"),
        ({"versions": ()}, "Quota: resource and versions are needed"),
        ({"group": "", "resource": "pods"}, "Quota: the scheduler watches pods already; read cluster.pods_on"),
        ({"group": "", "resource": "services"}, "Quota: the scheduler watches services already; read cluster.objects.services"),
        ({"label_selector": LabelSelector(match_labels={"a b": "c"})}, "Quota: label_selector: .*a label's name must be"),
        ({"label_selector": LabelSelector(match_expressions=(Requirement("tier", "Near"),))}, "Quota: label_selector: .*Near"),
        ({"field_selector": "metadata.name"}, "Quota: field_selector: found 'metadata.name'; allowed terms field=value"),
        ({"field_selector": "a=b,,c=d"}, "Quota: field_selector: found ''; allowed terms field=value"),
        ({"poll_seconds": 0.5}, "poll_seconds: found 0.5; allowed 1 or more"),
        ({"poll_seconds": 30.0, "follower": lambda _: ObjectFollower()}, "poll_seconds: a follower is told by a watch"),
        ({"poll_seconds": 30.0, "stale_after_seconds": 30.0}, "stale_after_seconds: found 30; allowed more than poll_seconds"),
    ],
)
def test_a_source_that_could_not_be_read_is_refused_when_it_is_declared(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        replace(QUOTAS, **fields)


def test_what_a_follower_is_told_of_may_be_watched_already_and_is_not_kept_or_asked_for() -> None:
    ended = replace(QUOTAS, group="", resource="pods", versions=("v1",), follower=lambda _: ObjectFollower())
    quotas = replace(QUOTAS, follower=lambda _: ObjectFollower())
    assert (ended.path, quotas.path) == ("/api/v1/pods", "/apis/example.com/v1/quotas")
    declared = [(ended, "Ends"), (quotas, "Quotas")]
    assert reflected_rows(declared) == REFLECTED
    assert [need.plugin for need in declared_needs(declared)] == ["Quotas"], "the role reads pods anyway"


def test_objects_are_recognised_by_group_and_kind_in_any_version() -> None:
    assert QUOTAS.reads("example.com/v2", "Quota")
    assert not QUOTAS.reads("example.org/v1", "Quota")
    assert not QUOTAS.reads("example.com/v1", "Quotas")


@pytest.mark.parametrize("resource", ["configmaps", "resourcequotas", "limitranges"])
def test_objects_of_the_core_group_are_recognised(resource: str) -> None:
    source = replace(QUOTAS, group="", resource=resource)
    assert source.reads("v1", "Quota")
    assert not source.reads("example.com/v1", "Quota")


def test_the_selector_reaches_the_api_server_as_text_that_it_reads_alike() -> None:
    expressions = (Requirement("tier", "NotIn", ("b", "a")), Requirement("example.com/on", "Exists"), Requirement("off", "DoesNotExist"))
    source = replace(QUOTAS, label_selector=LabelSelector(match_labels={"app": "web"}, match_expressions=expressions))
    read_by_server = parse_labels(source.selector.query)
    keys = ("app", "tier", "example.com/on", "off")
    for values in product(("", "web", "a", None), repeat=4):
        labels = {key: value for key, value in zip(keys, values, strict=True) if value is not None}
        assert source.selects({"metadata": {"labels": labels}}) == read_by_server(labels), labels


@pytest.mark.parametrize(
    ("fields", "selected"),
    [
        ("", True),
        ("metadata.name=q", True),
        ("metadata.name==other", False),
        ("metadata.name!=other,spec.on=true", True),
        ("spec.off=", True),
    ],
)
def test_files_are_selected_by_fields_as_by_an_api_server(fields: str, selected: bool) -> None:
    assert replace(QUOTAS, field_selector=fields).selects({"metadata": {"name": "q"}, "spec": {"on": True}}) == selected


@pytest.mark.parametrize("metadata", [None, 5, {"labels": 5}, {"labels": ["app"]}, {"labels": {"app": ["web"]}}, {"labels": {"app": None}}])
def test_an_object_in_a_file_with_labels_that_are_no_texts_is_not_selected_by_them(metadata: object) -> None:
    source = replace(QUOTAS, label_selector=LabelSelector(match_labels={"app": "web"}))
    assert not source.selects({"metadata": metadata})


def test_plugins_that_declare_one_source_alike_share_it() -> None:
    registry = Registry([plugin("A", QUOTAS), plugin("B", replace(QUOTAS))])
    assert registry.sources == {"Quota": (QUOTAS, "A")}


def test_plugins_that_declare_one_kind_differently_are_refused() -> None:
    with pytest.raises(PluginRegistrationError, match="plugin B: declares the source Quota otherwise than A does"):
        Registry([plugin("A", QUOTAS), plugin("B", replace(QUOTAS, poll_seconds=5.0))])


def test_objects_of_a_declared_kind_have_a_table_with_a_version_of_its_own() -> None:
    objects = Cluster().objects
    assert list(objects.of(Quota).values()) == []
    quota = Quota(metadata=ObjectMeta(name="q", namespace="team"), pods=3)
    before, others = objects.of(Quota).version, objects.version
    assert objects.put(quota) is None
    assert objects.of(Quota).get("q", "team") is quota
    assert objects.of(Quota).version > before
    assert quota in objects.shown()
    assert objects.remove(quota) is quota
    assert objects.of(Quota).get("q", "team") is None
    assert objects.version == others


def test_kinds_that_share_one_version_have_no_table() -> None:
    with pytest.raises(TypeError, match="Service has no table of its own"):
        Cluster().objects.of(Service)


def test_a_hint_registers_for_a_declared_kind_by_its_name() -> None:
    registered = event_with_hint("Quota", Action.UPDATE).event
    assert ClusterEvent("Quota", Action.UPDATE).concerns(registered)
    assert not ClusterEvent("Quota", Action.DELETE).concerns(registered)
    assert not ClusterEvent("Other", Action.UPDATE).concerns(registered)
