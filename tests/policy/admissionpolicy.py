"""Evaluates a MutatingAdmissionPolicy as an API server does, on plain objects, with the tree's own CEL.

As kubernetes/kubernetes' `plugin/policy/mutating` does: selectors first, then match conditions, then each mutation with the variables, and
the next parameter sees the object as this one left it. An expression that fails leaves the object alone (`failurePolicy: Ignore`). A
variable whose evaluation fails counts only where it is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from kubesandbox.edits.jsonpatch import apply_json_patch
from placewright.api.decode import convert
from placewright.api.objects import LabelSelector
from placewright.api.selectors import compile_label_selector
from placewright.cel.program import Environment, Program
from placewright.cel.respelled import Respell
from placewright.cel.syntax import Brackets, ExpressionError, Item, Token, tree

Object = dict[str, Any]
COMPONENTS: Final = Path(__file__).parents[2] / "manifests" / "components"


def _json_patch(items: Sequence[Item], i: int, respell: Respell) -> tuple[list[Item], int]:
    """Respell `JSONPatch{op: 'add'}`, which the library cannot construct, as the map `{'op': 'add'}`."""
    fields = items[i + 1]
    assert isinstance(fields, Brackets)
    entries: list[Item] = []
    for name, *rest in fields.arguments:
        assert isinstance(name, Token)
        entries += [*([Token("sign", ",")] if entries else []), Token("text", f"'{name.text}'"), *respell(rest)]
    return [Brackets("{", entries)], 2


CONDITIONS: Final = Environment(frozenset({"object", "params", "request"}))
MUTATIONS: Final = Environment(
    frozenset({"object", "params", "request", "namespaceObject", "variables"}), respellings={"JSONPatch": _json_patch}
)


class AdmissionPolicy:
    """One policy whose parameters are given by the caller. It has one mutation, a JSON patch."""

    def __init__(self, manifest: Object) -> None:
        spec = manifest["spec"]
        self.constraints = spec["matchConstraints"]
        self.conditions = [_program(each, CONDITIONS) for each in spec["matchConditions"]]
        self.variables = [(each["name"], _program(each, MUTATIONS)) for each in spec["variables"]]
        (mutation,) = spec["mutations"]
        assert (mutation["patchType"], spec["failurePolicy"]) == ("JSONPatch", "Ignore")
        self.mutation = _program(mutation["jsonPatch"], MUTATIONS)

    def admitted(self, pod: Object, namespace: Object, parameters: Iterable[Object]) -> Object:
        """The pod as it is after all parameters, in this order.

        Args:
            pod: at its creation, with the defaults.
            namespace: of the pod.
            parameters: the policy's.
        """
        # An API server looks at the selectors once, with the object as it came.
        if _selects(self.constraints["namespaceSelector"], namespace) and _selects(self.constraints["objectSelector"], pod):
            for params in parameters:
                pod = self._evaluated(pod, namespace, params)
        return pod

    def _evaluated(self, pod: Object, namespace: Object, params: Object) -> Object:
        known = {"object": pod, "params": params, "request": {"namespace": namespace["metadata"]["name"]}}
        try:
            if not all(condition.evaluate(known) is True for condition in self.conditions):
                return pod
            known |= {"namespaceObject": namespace, "variables": {}}
            for name, program in self.variables:
                try:
                    known["variables"] = {**known["variables"], name: program.evaluate(known)}
                except ExpressionError:
                    continue
            patched: Object = apply_json_patch(pod, self.mutation.evaluate(known))
        except ExpressionError:
            return pod
        return patched


def the_policy() -> AdmissionPolicy:
    """The policy that is shipped."""
    return AdmissionPolicy(yaml.safe_load((COMPONENTS / "profile-assignment" / "policy.yaml").read_text()))


def _program(each: Object, environment: Environment) -> Program:
    program = Program(tree(each["expression"]), environment)
    assert not program.undeclared | program.unknown, each
    return program


def _selects(selector: Object, content: Object) -> bool:
    return compile_label_selector(convert(selector, LabelSelector)).matches(content["metadata"].get("labels") or {})
