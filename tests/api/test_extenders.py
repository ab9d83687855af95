"""Extenders: what a profile says of one, which pods it wants to hear of, and what must never be printed."""

from __future__ import annotations

from typing import Any

import pytest

from placewright.api.decode import DecodeError, convert
from placewright.api.extenders import (
    DEFAULT_TIMEOUT,
    MAX_EXTENDER_SCORE,
    ExtenderSettings,
    ExtenderSpec,
    ExtenderTLS,
    Filtered,
    ManagedResource,
    NodeVictims,
)
from placewright.testing import pod
from placewright.testing.pods import PodMaker

GPU = ManagedResource(name="example.com/gpu")


def manages(*names: str) -> ExtenderSettings:
    return ExtenderSettings(url_prefix="http://extender", managed_resources=tuple(ManagedResource(name=name) for name in names))


def test_the_fields_are_those_of_a_kube_scheduler_configuration() -> None:
    said = {
        "urlPrefix": "https://e/api", "filterVerb": "filter", "preemptVerb": "preempt", "prioritizeVerb": "prioritize", "weight": 5,
        "bindVerb": "bind", "enableHTTPS": True, "httpTimeout": "500ms", "nodeCacheCapable": True, "ignorable": True,
        "managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}],
        "tlsConfig": {
            "insecure": True, "serverName": "s",
            "certFile": "c", "keyFile": "k", "caFile": "a", "certData": "C", "keyData": "K", "caData": "A",
        },
    }  # fmt: skip
    read = convert(said, ExtenderSpec)
    assert read == ExtenderSpec(
        url_prefix="https://e/api", filter_verb="filter", preempt_verb="preempt", prioritize_verb="prioritize", weight=5, bind_verb="bind",
        enable_https=True, http_timeout="500ms", node_cache_capable=True, ignorable=True,
        managed_resources=[ManagedResource(name="example.com/gpu", ignored_by_scheduler=True)],
        tls_config=ExtenderTLS(
            insecure=True, server_name="s", cert_file="c", key_file="k", ca_file="a", cert_data="C", key_data="K", ca_data="A"
        ),
    )  # fmt: skip


def test_what_is_not_said_of_an_extender_is_as_in_kube_scheduler() -> None:
    read, settled = convert({}, ExtenderSpec), ExtenderSettings(url_prefix="u")
    assert (read.weight, read.enable_https, read.tls_config, read.managed_resources, read.ignorable) == (0, False, None, None, False)
    assert (settled.http_timeout, settled.managed_resources, settled.field) == (5.0, (), "spec.extenders[0]")
    assert (DEFAULT_TIMEOUT, MAX_EXTENDER_SCORE) == (5.0, 10)


@pytest.mark.parametrize("wrong", [{"weight": "5"}, {"enableHTTPS": "yes"}, {"httpTimeout": 5}, {"managedResources": [{"name": 1}]}])
def test_a_field_of_another_type_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(DecodeError, match=f"^ExtenderSpec: .*{next(iter(wrong))}"):
        convert(wrong, ExtenderSpec)


def test_an_extender_is_called_by_its_url() -> None:
    assert manages().name == "http://extender"


# --- who is asked about which pod --------------------------------------------------------------------------------------------------


P, ONE = pod("p"), {GPU.name: "1"}
STARTS_WITH_ONE = P.spec(initContainers=[{"name": "i", "resources": {"limits": ONE}}])


@pytest.mark.parametrize(
    ("asking", "interested"),
    [
        (P.spec(containers=[]), False),
        (P.requests(cpu="1"), False),
        (P.container("c", **ONE), True),
        (P.requests({GPU.name: "0"}), True),  # an extender manages a resource by its name; the amount does not matter
        (P.init_container("i", **ONE), True),
        (P.sidecar("s", **ONE), True),
        (P.limits(ONE), True),
        (STARTS_WITH_ONE, True),
        (P.limits({"example.com/fpga": "1"}), False),
        (P.requests({"example.com/gpu-mem": "1"}), False),
        (P.spec(resources={"requests": ONE}), False),
        (P.overhead(**ONE), False),
    ],
)
def test_an_extender_is_asked_about_pods_that_name_what_it_manages(asking: PodMaker, *, interested: bool) -> None:
    assert manages(GPU.name).interested_in(asking.build()) is interested
    assert manages("example.com/other", GPU.name).interested_in(asking.build()) is interested


def test_an_extender_that_manages_nothing_is_asked_about_every_pod() -> None:
    assert manages().interested_in(P.build())
    assert manages().interested_in(P.requests(cpu="1").build())


# --- secrets -----------------------------------------------------------------------------------------------------------------------


def test_a_private_key_is_in_no_representation_of_what_holds_it() -> None:
    """Representations end up in logs and tracebacks."""
    tls = ExtenderTLS(server_name="s", cert_data="CERT", key_data="SECRET", ca_data="CA", insecure=True)
    assert repr(tls) == "ExtenderTLS(insecure=True, server_name='s', cert_data='CERT', ca_data='CA')"
    assert repr(ExtenderTLS(key_data="SECRET")) == "ExtenderTLS()"
    for holder in (ExtenderSpec(tls_config=tls), ExtenderSettings(url_prefix="u", tls_config=tls)):
        assert "SECRET" not in repr(holder)
        assert "SECRET" not in f"{holder}"


def test_settings_are_values_that_two_profiles_may_share() -> None:
    one, other = manages(GPU.name), manages(GPU.name)
    assert one == other
    assert hash(one) == hash(other)
    with pytest.raises(AttributeError):
        one.weight = 3  # type: ignore[misc]


def test_an_answer_names_nobody_else_where_it_does_not_say() -> None:
    assert (Filtered(()).failed, Filtered(()).unresolvable, NodeVictims(()).violations) == ({}, {}, 0)
    first, second = Filtered(()), Filtered(())
    assert first.failed is not second.failed, "one answer's reasons must not turn up in another's"
