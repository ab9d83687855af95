"""Failures that cross rooms say what is known of them."""

from __future__ import annotations

import pytest

from placewright.api.bad_input import InputError, bad_field
from placewright.api.decode import DecodeError
from placewright.api.errors import BindError, ClaimError, EvictError, VolumeError
from placewright.api.quantity import QuantityError
from placewright.api.selectors import SelectorError


@pytest.mark.parametrize(
    ("said", "conflict", "unknown"), [({}, False, False), ({"conflict": True}, True, False), ({"unknown": True}, False, True)]
)
def test_a_binding_that_failed_says_whether_to_look_again_and_whether_it_may_exist(
    said: dict[str, bool], *, conflict: bool, unknown: bool
) -> None:
    error = BindError("409: the pod is bound", **said)
    assert (str(error), error.conflict, error.unknown) == ("409: the pod is bound", conflict, unknown)


def test_failures_of_the_network_are_told_apart_and_none_hides_behind_another() -> None:
    kinds = (BindError, EvictError, VolumeError, ClaimError, InputError)
    assert not any(issubclass(one, other) for one in kinds for other in kinds if one is not other)
    assert not any(issubclass(one, ValueError) for one in kinds)


def test_what_is_wrong_with_a_value_is_a_value_error() -> None:
    assert all(issubclass(kind, ValueError) for kind in (DecodeError, QuantityError, SelectorError))


def test_an_error_of_a_field_says_where_what_was_found_and_what_is_allowed() -> None:
    error = bad_field("spec.weights.Fit", -1, "a whole number from 0 to 100")
    assert isinstance(error, InputError)
    assert str(error) == "spec.weights.Fit: found -1; allowed a whole number from 0 to 100"
    assert str(bad_field("file.yaml", None, "x")) == "file.yaml: found nothing; allowed x"
    assert str(bad_field("f", "a\x1b[2J", "x")) == r"f: found 'a\x1b[2J'; allowed x"
