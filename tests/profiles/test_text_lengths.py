"""The operator itself refuses each text of a profile that is longer than the schema allows: `evaluate` and `simulate` ask no API server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest

from placewright.profiles.problem import ProfileError
from placewright.profiles.resolve import resolve
from placewright.profiles.schema import openapi_schema
from profiles.makers import CATALOGUE, a_profile

#: Fields that need others beside them, by the path of the object that has them.
BESIDE: Final[Mapping[str, Mapping[str, Any]]] = {
    "spec": {"schedulerName": "a"},
    "spec.fairness": {"by": "Label"},
    "spec.extenders[]": {"urlPrefix": "https://extender.example", "filterVerb": "filter"},
}
#: The same, by the path of the text.
WITH: Final[Mapping[str, Mapping[str, Any]]] = {
    "spec.shadows": {"mode": "Shadow", "schedulerName": ""},
    "spec.extenders[].prioritizeVerb": {"weight": 1},
    "spec.extenders[].tlsConfig.certFile": {"keyFile": "/tls.key"},
    "spec.extenders[].tlsConfig.keyFile": {"certFile": "/tls.crt"},
}


def texts(schema: Mapping[str, Any], path: str) -> Iterator[tuple[str, int]]:
    """The path and the limit of each text that has a limit."""
    if "maxLength" in schema:
        yield path, schema["maxLength"]
    for name, part in schema.get("properties", {}).items():
        yield from texts(part, f"{path}.{name}")
    for keyword, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if keyword in schema:
            yield from texts(schema[keyword], path + mark)


TEXTS: Final = dict(texts(openapi_schema()["properties"]["spec"], "spec"))


def holding(text: str, path: str) -> dict[str, Any]:
    """The smallest spec with the text at the path."""
    value: Any = text
    beside = dict(WITH.get(path, {}))
    while path != "spec":
        if path.endswith("[]"):
            value, path = [value], path.removesuffix("[]")
        elif path.endswith("{}"):
            value, path = {"a": value}, path.removesuffix("{}")
        else:
            path, _, name = path.rpartition(".")
            value = {**({"operator": "In"} if path.endswith("matchExpressions[]") else {}), **BESIDE.get(path, {}), **beside, name: value}
            beside = {}
    return dict(value)


@pytest.mark.parametrize("path", TEXTS)
def test_a_text_beyond_its_limit_is_refused_without_an_api_server(path: str) -> None:
    with pytest.raises(ProfileError) as refused:
        resolve(a_profile(holding("a" * (TEXTS[path] + 1), path)), CATALOGUE)
    place = path.partition("{}")[0].replace("[]", "[0]")
    assert any(place.startswith(problem.path) and problem.path != "spec" for problem in refused.value.problems), refused.value


@pytest.mark.parametrize("path", ["spec.shadows", "spec.extenders[].tlsConfig.serverName", "spec.extenders[].tlsConfig.caFile"])
def test_only_the_length_is_wrong_and_it_is_said_once(path: str) -> None:
    resolve(a_profile(holding("a" * TEXTS[path], path)), CATALOGUE)
    with pytest.raises(ProfileError) as refused:
        resolve(a_profile(holding("a" * (TEXTS[path] + 1), path)), CATALOGUE)
    (problem,) = refused.value.problems
    assert (problem.path, problem.allowed) == (path.replace("[]", "[0]"), f"at most {TEXTS[path]} characters")


def test_a_text_that_another_check_refuses_is_said_once() -> None:
    with pytest.raises(ProfileError) as refused:
        resolve(a_profile({"schedulerName": "a" * 254}), CATALOGUE)
    (problem,) = refused.value.problems
    assert problem.path == "spec.schedulerName"
