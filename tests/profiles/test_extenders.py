"""The extenders of a profile: what is refused, in which words, and what the rest comes to."""

from __future__ import annotations

import base64
import contextlib
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placewright.api.durations import seconds
from placewright.api.extenders import ExtenderSettings, ExtenderTLS, ManagedResource
from placewright.plugins.catalog import in_tree
from placewright.plugins.noderesources.args import NodeResourcesFitArgs
from placewright.profiles.check import check_extenders, leave_to_extenders, resolve_extenders
from placewright.profiles.config import read_profiles
from placewright.profiles.problem import ProfileError
from placewright.profiles.resolve import resolve
from placewright.profiles.schema import json_schema
from profiles.makers import a_profile
from randomcases import cases

URL = "http://extender.example/scheduler"
PEM = base64.b64encode(b"-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n").decode()


def extender(**fields: Any) -> dict[str, Any]:
    """One extender that is right but for what is said."""
    return {"urlPrefix": URL, "filterVerb": "filter"} | fields


def problems(*extenders: dict[str, Any]) -> list[str]:
    return [str(problem) for problem in check_extenders(a_profile({"extenders": list(extenders)}).spec.extenders)]


def resolved(*extenders: dict[str, Any]) -> tuple[ExtenderSettings, ...]:
    assert problems(*extenders) == []
    return resolve_extenders(a_profile({"extenders": list(extenders)}).spec.extenders)


WRONG: list[tuple[dict[str, Any], str]] = [
    (extender(urlPrefix=""), 'spec.extenders[0].urlPrefix: found ""; allowed an http or https URL with a host'),
    (extender(urlPrefix="extender:80"), 'spec.extenders[0].urlPrefix: found "extender:80"; allowed an http or https URL'),
    (extender(urlPrefix="ftp://extender"), 'spec.extenders[0].urlPrefix: found "ftp://extender"; allowed an http or https URL'),
    (extender(urlPrefix="http://"), 'spec.extenders[0].urlPrefix: found "http://"; allowed an http or https URL with a host'),
    (extender(urlPrefix="http://x:port/"), 'spec.extenders[0].urlPrefix: found "http://x:port/"; allowed an http or https URL'),
    (extender(urlPrefix="http://x/?q=1"), 'spec.extenders[0].urlPrefix: found "http://x/?q=1"; allowed an http or https URL'),
    (extender(urlPrefix="http://x y/"), 'spec.extenders[0].urlPrefix: found "http://x y/"; allowed an http or https URL'),
    (extender(urlPrefix="http://me:secret@x"), "spec.extenders[0].urlPrefix: found a user name in the URL; allowed"),
    (extender(filterVerb="fil ter"), 'spec.extenders[0].filterVerb: found "fil ter"; allowed the last part of a URL'),
    (extender(filterVerb="filter#x"), 'spec.extenders[0].filterVerb: found "filter#x"; allowed the last part of a URL'),
    ({"urlPrefix": URL}, "spec.extenders[0]: found nothing to call; allowed at least one of filterVerb, preemptVerb"),
    (extender(prioritizeVerb="p"), "spec.extenders[0].weight: found 0; allowed 1 to 100000, where there is a prioritizeVerb"),
    (extender(prioritizeVerb="p", weight=-2), "spec.extenders[0].weight: found -2; allowed 1 to 100000"),
    (extender(prioritizeVerb="p", weight=100001), "spec.extenders[0].weight: found 100001; allowed 1 to 100000"),
    (extender(weight=-1), "spec.extenders[0].weight: found -1; allowed 0 to 100000"),
    (extender(httpTimeout="5"), 'spec.extenders[0].httpTimeout: found "5"; allowed a duration above 0 and up to 600s'),
    (extender(httpTimeout="0s"), 'spec.extenders[0].httpTimeout: found "0s"; allowed a duration above 0'),
    (extender(httpTimeout="-1s"), 'spec.extenders[0].httpTimeout: found "-1s"; allowed a duration above 0'),
    (extender(httpTimeout="11m"), 'spec.extenders[0].httpTimeout: found "11m"; allowed a duration above 0 and up to 600s'),
    (
        extender(managedResources=[{"name": "cpu"}]),
        'spec.extenders[0].managedResources[0].name: found "cpu"; allowed the name of an extended resource',
    ),
    (extender(managedResources=[{}]), 'spec.extenders[0].managedResources[0].name: found ""; allowed the name of an extended resource'),
    (
        extender(managedResources=[{"name": "requests.example.com/gpu"}]),
        'spec.extenders[0].managedResources[0].name: found "requests.example.com/gpu"; allowed',
    ),
    (extender(managedResources=[{"name": "kubernetes.io/gpu"}]), 'spec.extenders[0].managedResources[0].name: found "kubernetes.io/gpu"'),
    (extender(managedResources=[{"name": "Example.com/gpu"}]), 'spec.extenders[0].managedResources[0].name: found "Example.com/gpu"'),
    (extender(managedResources=[{"name": "example.com/-gpu"}]), 'spec.extenders[0].managedResources[0].name: found "example.com/-gpu"'),
    (extender(tlsConfig={"certFile": "/c"}), "spec.extenders[0].tlsConfig: found a certificate without its key; allowed"),
    (extender(tlsConfig={"keyData": PEM}), "spec.extenders[0].tlsConfig: found a key without its certificate; allowed"),
    (extender(tlsConfig={"caData": "!!"}), "spec.extenders[0].tlsConfig.caData: found 2 characters of something else; allowed PEM"),
    (extender(tlsConfig={"caData": "aGVsbG8="}), "spec.extenders[0].tlsConfig.caData: found 8 characters of something else; allowed PEM"),
    (
        extender(tlsConfig={"insecure": True, "caFile": "/ca"}),
        "spec.extenders[0].tlsConfig.insecure: found true beside a CA; allowed false, or no caFile and caData",
    ),
]


@pytest.mark.parametrize(("wrong", "line"), WRONG, ids=[line.split("; allowed")[0] for _, line in WRONG])
def test_a_wrong_extender_is_refused_in_one_line(wrong: dict[str, Any], line: str) -> None:
    (found,) = problems(wrong)
    assert found.startswith(line)


def test_a_second_binder_is_refused_wherever_it_stands() -> None:
    found = problems(extender(), extender(bindVerb="b"), extender(bindVerb="c"), extender(bindVerb="d"))
    assert found == [
        'spec.extenders[2].bindVerb: found "c"; allowed nothing: spec.extenders[1] binds, and only one may',
        'spec.extenders[3].bindVerb: found "d"; allowed nothing: spec.extenders[1] binds, and only one may',
    ]


def test_a_resource_is_managed_once_in_all_extenders() -> None:
    gpu = {"name": "example.com/gpu"}
    (found,) = problems(extender(managedResources=[gpu]), extender(managedResources=[{"name": "example.com/fpga"}, gpu]))
    assert found == (
        'spec.extenders[1].managedResources[1].name: found "example.com/gpu"; '
        "allowed each resource once; spec.extenders[0].managedResources[0].name has it"
    )


def test_every_problem_of_every_extender_is_told() -> None:
    found = problems(extender(urlPrefix="x", httpTimeout="soon"), extender(weight=-1))
    assert [line.split(":")[0] for line in found] == [
        "spec.extenders[0].urlPrefix",
        "spec.extenders[0].httpTimeout",
        "spec.extenders[1].weight",
    ]


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        ({"filterVerbs": "f"}, "spec.extenders[0].filterVerbs: found an unknown field; allowed urlPrefix, filterVerb,"),
        ({"enableHttps": True}, "spec.extenders[0].enableHttps: found an unknown field"),
        ({"tlsConfig": {"caCert": ""}}, "spec.extenders[0].tlsConfig.caCert: found an unknown field"),
        ({"managedResources": [{"named": "x"}]}, "spec.extenders[0].managedResources[0].named: found an unknown field"),
        ({"httpTimeout": 5}, "spec.extenders[0].httpTimeout: found 5; allowed text"),
        ({"weight": "5"}, 'spec.extenders[0].weight: found "5"; allowed a whole number'),
    ],
)
def test_fields_that_do_not_exist_and_values_of_another_type_are_refused(wrong: dict[str, Any], line: str) -> None:
    with pytest.raises(ProfileError) as caught:
        a_profile({"extenders": [extender(**wrong)]})
    assert line in str(caught.value)


def test_an_extender_that_says_little_gets_the_defaults() -> None:
    assert resolved(extender()) == (ExtenderSettings(url_prefix=URL, filter_verb="filter", http_timeout=5.0),)


def test_everything_that_can_be_said_arrives() -> None:
    (settings,) = resolved(
        {
            "urlPrefix": "https://x:8443/a/", "filterVerb": "f", "preemptVerb": "p", "prioritizeVerb": "s", "weight": 7, "bindVerb": "b",
            "enableHTTPS": True, "httpTimeout": "1m0.5s", "nodeCacheCapable": True, "ignorable": True,
            "tlsConfig": {"serverName": "n", "certData": PEM, "keyFile": "/k", "caFile": "/ca"},
            "managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}],
        }
    )  # fmt: skip
    assert settings == ExtenderSettings(
        url_prefix="https://x:8443/a/", filter_verb="f", preempt_verb="p", prioritize_verb="s", weight=7, bind_verb="b",
        enable_https=True, http_timeout=60.5, node_cache_capable=True, ignorable=True,
        tls_config=ExtenderTLS(server_name="n", cert_data=PEM, key_file="/k", ca_file="/ca"),
        managed_resources=(ManagedResource(name="example.com/gpu", ignored_by_scheduler=True),),
    )  # fmt: skip


def test_those_that_may_fail_are_called_last_and_keep_their_place_in_messages() -> None:
    names = ("a", "b", "c", "d")
    settings = resolved(*(extender(filterVerb=name, ignorable=name in "ac") for name in names))
    assert [(one.filter_verb, one.field) for one in settings] == [
        ("b", "spec.extenders[1]"),
        ("d", "spec.extenders[3]"),
        ("a", "spec.extenders[0]"),
        ("c", "spec.extenders[2]"),
    ]


def test_an_extender_may_do_nothing_but_take_a_resource_out_of_the_schedulers_hands() -> None:
    gpu = {"name": "example.com/gpu", "ignoredByScheduler": True}
    assert problems({"urlPrefix": URL, "managedResources": [gpu]}) == []


def test_resources_that_extenders_count_take_the_place_of_those_that_the_profile_ignores() -> None:
    gpu, fpga = {"name": "example.com/gpu", "ignoredByScheduler": True}, {"name": "example.com/fpga"}
    args: dict[str, object] = {"NodeResourcesFit": NodeResourcesFitArgs(ignored_resources=("example.com/other",))}
    leave_to_extenders(args, resolved(extender(managedResources=[fpga, gpu])))
    assert args == {"NodeResourcesFit": NodeResourcesFitArgs(ignored_resources=("example.com/gpu",))}


def test_without_such_resources_the_profile_keeps_its_word() -> None:
    fit = NodeResourcesFitArgs(ignored_resources=("example.com/other",))
    args: dict[str, object] = {"NodeResourcesFit": fit}
    leave_to_extenders(args, resolved(extender(managedResources=[{"name": "example.com/gpu"}])))
    assert args == {"NodeResourcesFit": fit}


def test_a_profile_without_noderesourcesfit_has_nothing_to_leave_to_extenders() -> None:
    args: dict[str, object] = {}
    leave_to_extenders(args, resolved(extender(managedResources=[{"name": "example.com/gpu", "ignoredByScheduler": True}])))
    assert args == {}


def test_extenders_of_a_scheduler_configuration_are_those_of_each_of_its_profiles() -> None:
    text = (
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "extenders: [{urlPrefix: 'http://x', filterVerb: filter, httpTimeout: 2s, enableHTTPS: false}]\n"
        "profiles: [{schedulerName: a}, {schedulerName: b}]\n"
    )
    for one in read_profiles(text, "a.yaml"):
        (settings,) = resolve_extenders(one.spec.extenders)
        assert (settings.name, settings.http_timeout) == ("http://x", 2.0)


def test_a_key_is_not_shown_with_the_settings() -> None:
    assert "topsecret" not in repr(ExtenderSettings(url_prefix=URL, tls_config=ExtenderTLS(key_data="topsecret", ca_file="/ca")))


@pytest.mark.parametrize(
    ("text", "expected"),
    [("5s", 5), ("1h1m1s", 3661), ("1.5s", 1.5), (".5m", 30), ("250ms", 0.25), ("10us", 1e-5), ("10µs", 1e-5), ("1ns", 1e-9), ("0s", 0)],
)
def test_durations_are_read_as_go_reads_them(text: str, expected: float) -> None:
    assert seconds(text) == pytest.approx(expected)


@pytest.mark.parametrize("text", ["", "5", "s", "-5s", "5 s", "5s ", "5s\n", "1d", "1e3s", "٣s", "1" * 70 + "s"])
def test_what_is_no_duration_has_no_seconds(text: str) -> None:
    assert seconds(text) is None


def test_the_schema_takes_what_the_reader_takes_and_says_no_to_what_it_can_see() -> None:
    def accepted(one: dict[str, Any]) -> bool:
        return not list(jsonschema.Draft202012Validator(json_schema()).iter_errors(
            {
                "apiVersion": "placewright.dev/v1alpha1",
                "kind": "SchedulingProfile",
                "metadata": {"name": "p"},
                "spec": {"schedulerName": "p", "extenders": [one]},
            }
        ))  # fmt: skip

    assert accepted(extender(httpTimeout="1m0.5s", tlsConfig={"caFile": "/ca"}, managedResources=[{"name": "example.com/gpu"}], weight=3))
    refused: list[dict[str, Any]] = [
        {"httpTimeout": "5"},
        {"urlPrefix": "ftp://x"},
        {"weight": -1},
        {"managedResources": [{}]},
        {"tlsConfig": {"ca": ""}},
    ]
    for wrong in refused:
        assert not accepted(extender(**wrong)), wrong


def test_a_profile_that_is_resolved_has_its_extenders_in_order_and_what_they_count_is_ignored() -> None:
    managed = [{"name": "example.com/gpu", "ignoredByScheduler": True}]
    spec = {"extenders": [extender(ignorable=True, managedResources=managed), extender(filterVerb="second")]}
    found = resolve(a_profile(spec), in_tree())
    assert [one.filter_verb for one in found.extenders] == ["second", "filter"]
    assert found.args["NodeResourcesFit"] == NodeResourcesFitArgs(ignored_resources=("example.com/gpu",))


_JUNK = st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=6)
_VERBS = st.sampled_from(["", "filter", "a b", "x/y"]) | _JUNK
_TLS = st.dictionaries(st.sampled_from(["insecure", "caFile", "caData", "certData", "keyFile", "x"]), _JUNK, max_size=4)
_RESOURCE = st.fixed_dictionaries({"name": st.sampled_from(["a.b/c", "cpu", "a/b/c", "é/x"]) | _JUNK})
_EXTENDER = st.fixed_dictionaries(
    {},
    optional={
        "urlPrefix": st.sampled_from(["http://x", "https://[::1]:8/a", "http://x:99999", "http://a@b", "//x"]) | _JUNK,
        "filterVerb": _VERBS,
        "prioritizeVerb": _VERBS,
        "bindVerb": _VERBS,
        "weight": st.integers(-1, 100_001) | _JUNK,
        "httpTimeout": st.sampled_from(["5s", "0s", "1h", "9" * 30 + "h", ".s"]) | _JUNK,
        "tlsConfig": _TLS | _JUNK,
        "managedResources": st.lists(_RESOURCE, max_size=2),
        "ignorable": st.booleans() | _JUNK,
    },
)


@settings(max_examples=cases(400))
@given(extenders=st.lists(_EXTENDER, max_size=3) | _JUNK)
def test_whatever_is_written_is_resolved_or_refused(extenders: Any) -> None:
    with contextlib.suppress(ProfileError):
        found = resolve(a_profile({"extenders": extenders}), in_tree()).extenders
        assert len(found) == len(extenders or ())
        assert [one.ignorable for one in found] == sorted(one.ignorable for one in found)
        assert all(0 < one.http_timeout <= 600 for one in found)
        assert all(one.weight > 0 for one in found if one.prioritize_verb)
        assert sum(bool(one.bind_verb) for one in found) <= 1
