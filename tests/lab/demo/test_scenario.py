"""What a demo runs: profiles for the pods' schedulers, and the change."""

from __future__ import annotations

import json
import shlex

import pytest

from placewright.api.bad_input import InputError
from placewright_lab.bench.madeup import mixed_nodes, plain_pods
from placewright_lab.demo.scenario import make_scenario
from placewright_lab.readers.inputs import Inputs


def test_pods_that_name_no_scheduler_get_the_profile_default() -> None:
    scenario = make_scenario(Inputs(nodes=mixed_nodes(2), pods=plain_pods(3)))
    kinds = [o["kind"] for o in scenario.objects]
    assert kinds == ["SchedulingProfile", "Node", "Node"]
    assert scenario.objects[0]["metadata"]["name"] == scenario.profile == "default"
    assert scenario.objects[0]["spec"]["schedulerName"] == "default-scheduler"
    assert scenario.notes == []


def test_every_scheduler_that_pods_name_gets_a_profile_and_that_of_most_pods_is_changed() -> None:
    pods = plain_pods(3)
    for pod in pods[:2]:
        pod["spec"]["schedulerName"] = "Batch_One"
    scenario = make_scenario(Inputs(nodes=mixed_nodes(1), pods=pods))
    profiles = {o["spec"]["schedulerName"]: o["metadata"]["name"] for o in scenario.objects[:2]}
    assert profiles == {"Batch_One": "batch-one", "default-scheduler": "default"}
    assert scenario.profile == "batch-one"
    assert scenario.notes == ["2 pods name the scheduler Batch_One: a profile for it is made"]


def test_a_profile_of_the_input_is_used_as_it_is() -> None:
    profile = {
        "apiVersion": "placewright.dev/v1alpha1",
        "kind": "SchedulingProfile",
        "metadata": {"name": "mine"},
        "spec": {"schedulerName": "default-scheduler"},
    }
    scenario = make_scenario(Inputs(nodes=mixed_nodes(1), pods=plain_pods(1), others=[profile]))
    assert [o["kind"] for o in scenario.objects] == ["SchedulingProfile", "Node"]
    assert scenario.profile == "mine"


def test_the_change_is_shown_as_a_command_that_a_shell_reads_as_the_same_patch() -> None:
    scenario = make_scenario(Inputs(nodes=mixed_nodes(1), pods=plain_pods(1)))
    words = shlex.split(scenario.change_command)
    assert words[:6] == ["kubectl", "patch", "schedprof", "default", "--type", "merge"]
    assert json.loads(words[7]) == scenario.change


@pytest.mark.parametrize(
    ("inputs", "message"),
    [(Inputs(pods=plain_pods(1)), "nodes: found 'none'"), (Inputs(nodes=mixed_nodes(1)), "pods: found 'none'")],
)
def test_an_input_without_nodes_or_without_pods_is_refused(inputs: Inputs, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_scenario(inputs)
