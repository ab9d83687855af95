"""Terms that pods on nodes hold against newcomers are compiled when their pod is shown: a first decision finds them compiled."""

from __future__ import annotations

from typing import Any

import pytest

from placewright.api.objects import Affinity
from placewright.cluster import affinityterms, pairwisegroups
from placewright.cluster.affinityterms import CompiledTerms, Term, compile_terms
from placewright.plugins.interpodaffinity import matchers

from .makers import PodMaker, World, node, pod

TERMS, PODS = 8, 30


def wary(name: str, operator: str = "Exists") -> PodMaker:
    """A pod on a node with anti-affinity against labels that no other pod mentions."""
    terms: list[dict[str, Any]] = [
        {
            "topologyKey": "kubernetes.io/hostname",
            "namespaceSelector": {},
            "labelSelector": {"matchExpressions": [{"key": f"{name}-{each}", "operator": operator}]},
        }
        for each in range(TERMS)
    ]
    return pod(name).on("n0").spec(affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}})


def placed(world: World, waiting: PodMaker) -> bool:
    binding = world.pods(waiting).decide()
    if binding is not None:
        binding.close()
    return binding is not None


def test_each_pod_is_compiled_when_it_is_shown_and_none_in_a_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []

    def noted(affinity: Affinity, namespace: str) -> CompiledTerms:
        compiled.append(namespace)
        return compile_terms(affinity, namespace)

    for module in (affinityterms, pairwisegroups):
        monkeypatch.setattr(module, "compile_terms", noted)
    world = World().nodes(node("n0"), node("n1"))
    for number in range(PODS):
        world.pods(wary(f"w{number}"))
        assert len(compiled) == number + 1
    assert placed(world, pod("first")) and placed(world, pod("second").labels(app="web"))
    world.pods(wary("w0").labels(app="other"))
    assert len(compiled) == PODS, "a pod that carries the same terms is not compiled again"


def test_a_profile_that_is_built_later_finds_the_terms_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World().nodes(node("n0"), node("n1")).pods(*(wary(f"w{number}") for number in range(PODS)))
    monkeypatch.setattr(pairwisegroups, "compile_terms", lambda *_: pytest.fail("compiled in one go"))
    banned = matchers.Matcher(1).facing(pod("new").labels({"w3-1": "x"}).build(), world.cluster).bans
    assert [ban.key for ban in banned] == ["kubernetes.io/hostname"]


def test_only_terms_that_demand_one_of_a_pods_labels_are_compared_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World().nodes(node("n0"), node("n1")).pods(*(wary(f"w{number}") for number in range(PODS)))
    asked: list[Term] = []
    matches = Term.matches

    def noted(self: Term, *args: Any) -> bool:
        asked.append(self)
        return matches(self, *args)

    monkeypatch.setattr(Term, "matches", noted)
    assert placed(world, pod("ordinary").labels(app="web"))
    assert asked == []
    assert placed(world, pod("meant").labels({"w3-1": "x"}))
    assert len(asked) == 1
    assert world.cluster.placement("uid-meant") is not None
    assert str(world.cluster.placement("uid-meant").node) == "n1"  # type: ignore[union-attr]
