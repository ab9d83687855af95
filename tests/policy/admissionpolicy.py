"""Evaluates the shipped admission policies as an API server does, on plain objects, with the tree's own CEL.

As kubernetes/kubernetes' `plugin/policy/mutating` does: selectors first, then match conditions, then each mutation with the variables, and
the next parameter sees the object as this one left it. An expression that fails leaves the object alone (`failurePolicy: Ignore`). A
variable whose evaluation fails counts only where it is used. A ValidatingAdmissionPolicy is evaluated alike, after all mutations.
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


class _Policy:
    """The parts that both kinds of policies have. The caller gives the parameters."""

    def __init__(self, manifest: Object) -> None:
        spec = manifest["spec"]
        assert spec["failurePolicy"] == "Ignore"
        self.constraints = spec["matchConstraints"]
        self.conditions = [_program(each, CONDITIONS) for each in spec["matchConditions"]]
        self.variables = [(each["name"], _program(each, MUTATIONS)) for each in spec["variables"]]

    def selects(self, pod: Object, namespace: Object) -> bool:
        """Whether the policy is evaluated for the pod at all."""
        selectors = (("namespaceSelector", namespace), ("objectSelector", pod))
        return all(_selects(self.constraints[name], content) for name, content in selectors if name in self.constraints)

    def known(self, pod: Object, namespace: Object, params: Object) -> Object | None:
        """Return all that expressions may name; None if a condition does not hold.

        Raises:
            ExpressionError: a condition fails.
        """
        known = {"object": pod, "params": params, "request": {"namespace": namespace["metadata"]["name"]}}
        if not all(condition.evaluate(known) is True for condition in self.conditions):
            return None
        known |= {"namespaceObject": namespace, "variables": {}}
        for name, program in self.variables:
            try:
                known["variables"] = {**known["variables"], name: program.evaluate(known)}
            except ExpressionError:
                continue
        return known


class AdmissionPolicy(_Policy):
    """A MutatingAdmissionPolicy. It has one mutation, a JSON patch."""

    def __init__(self, manifest: Object) -> None:
        super().__init__(manifest)
        (mutation,) = manifest["spec"]["mutations"]
        assert mutation["patchType"] == "JSONPatch"
        self.mutation = _program(mutation["jsonPatch"], MUTATIONS)

    def admitted(self, pod: Object, namespace: Object, parameters: Iterable[Object]) -> Object:
        """The pod as it is after all parameters, in this order.

        Args:
            pod: at its creation, with the defaults.
            namespace: of the pod.
            parameters: the policy's.
        """
        # An API server looks at the selectors once, with the object as it came.
        if self.selects(pod, namespace):
            for params in parameters:
                pod = self._evaluated(pod, namespace, params)
        return pod

    def _evaluated(self, pod: Object, namespace: Object, params: Object) -> Object:
        try:
            known = self.known(pod, namespace, params)
            if known is None:
                return pod
            patched: Object = apply_json_patch(pod, self.mutation.evaluate(known))
        except ExpressionError:
            return pod
        return patched


class ValidatingPolicy(_Policy):
    """A ValidatingAdmissionPolicy. It has one validation, whose message is an expression."""

    def __init__(self, manifest: Object) -> None:
        super().__init__(manifest)
        (validation,) = manifest["spec"]["validations"]
        self.validation = _program(validation, MUTATIONS)
        self.message = _program({"expression": validation["messageExpression"]}, MUTATIONS)

    def messages(self, pod: Object, namespace: Object, parameters: Iterable[Object]) -> list[str]:
        """The messages of all parameters whose validation fails.

        Args:
            pod: at its creation, after all mutations.
            namespace: of the pod.
            parameters: the policy's.
        """
        if not self.selects(pod, namespace):
            return []
        every = (self.known(pod, namespace, params) for params in parameters)
        return [self.message.evaluate(known) for known in every if known is not None and self.validation.evaluate(known) is not True]


def the_policy() -> AdmissionPolicy:
    """The policy that gives profiles, as shipped."""
    return AdmissionPolicy(yaml.safe_load((COMPONENTS / "profile-assignment" / "policy.yaml").read_text()))


def the_use_policy() -> ValidatingPolicy:
    """The policy that warns of profiles that a namespace may not use, as shipped."""
    return ValidatingPolicy(yaml.safe_load((COMPONENTS / "profile-assignment" / "use-policy.yaml").read_text()))


def _program(each: Object, environment: Environment) -> Program:
    program = Program(tree(each["expression"]), environment)
    assert not program.undeclared | program.unknown, each
    return program


def _selects(selector: Object, content: Object) -> bool:
    return compile_label_selector(convert(selector, LabelSelector)).matches(content["metadata"].get("labels") or {})
