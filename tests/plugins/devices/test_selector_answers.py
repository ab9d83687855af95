"""Selectors in CEL: what an expression says of a device, where it has an answer."""

from __future__ import annotations

import json
import random

import msgspec
import pytest
from device_selectors import NoAnswer, some_test
from device_worlds import DRIVERS, Dice, device
from selector_verdicts import GPU, MEMORY, MINE, verdict

from placewright.api.devices import Device
from placewright.cel.syntax import ExpressionError
from placewright.plugins.dynamicresources.selectors import CompiledSelectors, DeviceShapes
from seeds import seeds


@pytest.mark.parametrize(
    "expression",
    [
        f'device.driver == "{GPU}"',
        f'{MINE}.model == "a100"',
        f'{MINE}["model"] == "a100"',
        f'{MINE}.model in ["a100", "h100"]',
        f'"model" in {MINE} && !("colour" in {MINE})',
        f"has({MINE}.model) && !has({MINE}.colour)",
        'device.attributes["other.example.com"].rank == 7',
        '!has(device.attributes["unknown.example.com"].rank)',
        '!("rank" in device.attributes["unknown.example.com"])',
        '"other.example.com" in device.attributes && !("unknown.example.com" in device.attributes)',
        'device.attributes[device.driver].model == "a100"',
        f"{MINE}.fast",
        f"{MINE}.numa >= 3 && {MINE}.numa < 3.5",
        f'{MINE}.numa != "3"',
        f'{MINE}.model.startsWith("a") && {MINE}.model.matches("^a[0-9]{{3}}$")',
        f'{MINE}.model.upperAscii() == "A100" && {MINE}.model.substring(1) == "100" && {MINE}.model.indexOf("0") == 2',
        f"{MINE}.exists(name, name == 'numa') && {MINE}.all(name, name != 'colour')",
        f"size({MINE}.name) == 4 && {MINE}.name.size() == 4",
        f'{MEMORY}.compareTo(quantity("40Gi")) == 0 && {MEMORY} == quantity("40960Mi")',
        f'{MEMORY}.isGreaterThan(quantity("39.5Gi")) && {MEMORY}.isLessThan(quantity("1Ti"))',
        f'{MEMORY}.sub(quantity("30Gi")).add(quantity("1Gi")) == quantity("11Gi")',
        f"{MEMORY}.asInteger() == 42949672960 && {MEMORY}.isInteger() && {MEMORY}.sign() == 1",
        'device.capacity["other.example.com"].cores.asApproximateFloat() == 1.5',
        '!device.capacity["other.example.com"].cores.isInteger()',
        'isQuantity("1Gi") && !isQuantity("1Qi") && isSemver("1.0.0") && !isSemver("1.0") && isSemver("v1.0", true)',
        f'{MINE}.ver.isLessThan(semver("1.10.0")) && {MINE}.ver.isGreaterThan(semver("1.9.9"))',
        f'{MINE}.ver == semver("1.10.0-rc.1") && {MINE}.ver.minor() == 10',
        f'{MINE}.ver.compareTo(semver("1.10.0-rc.1.0")) == -1 && {MINE}.ver.compareTo(semver("1.10.0-beta.99")) == 1',
        f"cel.bind(dra, {MINE}, dra.fast && dra.numa == 3)",
        f"cel.bind(a, {MINE}.numa, cel.bind(b, a + 1, b == 4))",
        "!device.allowMultipleAllocations",
        f"{MINE}.fast // as it is\n && true",
        f'{MINE}.colour == "red" || {MINE}.fast',
        f'!({MINE}.colour == "red" && false)',
    ],
)
def test_an_expression_is_true_of_the_device(expression: str) -> None:
    assert verdict(expression) is True
    assert verdict(f"!({expression}\n)") is False


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        (f'{MINE}.colour == "red"', "no such key: colour"),
        ('device.attributes["unknown.example.com"].rank == 7', "no such key: rank"),
        (f"{MINE}.model", "evaluates to str, must be true or false"),
        (f"{MINE}.numa > 'a'", "No such overload"),
        (f"{MINE}.numa / 0 == 1", "division by zero"),
        (f"{MEMORY}.compareTo(1) == 0", "no such overload"),
        ('quantity("much") == quantity("1")', "'much' is not a quantity"),
        ('semver("1.0") == semver("1.0.0")', "'1.0' is not a semantic version"),
        (f"{MINE}.ver.compareTo(quantity('1')) == 0", "no such overload"),
    ],
)
def test_an_expression_without_an_answer_says_why(expression: str, said: str) -> None:
    assert said in str(verdict(expression))


#: Every function of Kubernetes' libraries for selectors, served: an expression that is true.
SERVED = (
    "[1, 2, 2].isSorted() && ![2, 1].isSorted() && [].isSorted() && ['a', 'b'].isSorted()",
    "[1, 2].sum() == 3 && [1.5].sum() == 1.5 && [].sum() == 0",
    "[3, 1].min() == 1 && ['b', 'a'].min() == 'a'",
    "[3, 1].max() == 3",
    "[1, 2, 1].indexOf(1) == 0 && [1].indexOf(2) == -1 && [true].indexOf(1) == -1 && 'abc'.indexOf('c') == 2",
    "[1, 2, 1].lastIndexOf(1) == 2 && 'abcabc'.lastIndexOf('c') == 5",
    "'hello'.replace('l', 'L') == 'heLLo' && 'hello'.replace('l', 'L', 1) == 'heLlo' && 'ab'.replace('', '-') == '-a-b-'",
    "'a,b,c'.split(',') == ['a', 'b', 'c'] && 'a,b,c'.split(',', 2) == ['a', 'b,c'] && 'a'.split(',', 0) == []",
    "'abc'.split('') == ['a', 'b', 'c'] && 'abc'.split('', 2) == ['a', 'bc']",
    "sets.contains([1, 2, 3], [2, 3]) && !sets.contains([1], [2]) && sets.contains([1], [])",
    "sets.equivalent([1, 2, 2], [2, 1]) && !sets.equivalent([1], [1, 2])",
    "sets.intersects([1, 2], [2, 3]) && !sets.intersects([1], [])",
    "['a', 'b'].join('-') == 'a-b' && 'Ab'.lowerAscii() == 'ab' && 'Ab'.upperAscii() == 'AB' && ' a '.trim() == 'a'",
    "'abc'.charAt(1) == 'b' && 'abc'.substring(1) == 'bc' && 'abc'.substring(1, 2) == 'b'",
    "quantity('1Gi').isGreaterThan(quantity('1Mi')) && isQuantity('1Gi') && !isQuantity('x')",
    "semver('1.2.3').isLessThan(semver('1.3.0')) && isSemver('1.2.3')",
    "'abc'.matches('^a.c$') && 'abc'.contains('b') && 'abc'.startsWith('a') && 'abc'.endsWith('c') && size('abc') == 3",
    "cel.bind(x, 2, x + x == 4) && [1, 2].exists(x, x == 2) && [1, 2].all(x, x > 0) && [1].exists_one(x, x == 1)",
    "[1, 2].map(x, x + 1) == [2, 3] && [1, 2].filter(x, x > 1) == [2]",
    "duration('1h') > duration('1m') && string(1) == '1' && int('1') == 1 && double('1.5') == 1.5",
)


@pytest.mark.parametrize("expression", SERVED)
def test_functions_that_are_served_do_what_kubernetes_says(expression: str) -> None:
    assert verdict(expression) is True


@pytest.mark.parametrize("expression", ["[].min() == 1", "[].max() == 1", "[1, 'a'].isSorted()", "['a'].sum() == 1"])
def test_functions_on_lists_have_no_answer_where_kubernetes_has_none(expression: str) -> None:
    assert isinstance(verdict(expression), str)


@pytest.mark.parametrize("letter", ["a", "Z", "é", "ß", "İ", "ﬁ", "😀", "\u0000", "ǅ"])
def test_only_letters_of_ascii_have_another_case(letter: str) -> None:
    text = f"x{letter}Y" * 3
    lower = "".join(chr(ord(c) + 32) if "A" <= c <= "Z" else c for c in text)
    upper = "".join(chr(ord(c) - 32) if "a" <= c <= "z" else c for c in text)
    assert verdict(f"{json.dumps(text, ensure_ascii=False)}.lowerAscii() == {json.dumps(lower, ensure_ascii=False)}") is True
    assert verdict(f"{json.dumps(text, ensure_ascii=False)}.upperAscii() == {json.dumps(upper, ensure_ascii=False)}") is True


@pytest.mark.parametrize("pattern", ["^a1", "(?i)^A1", "(?s).*1.*", "(?P<first>a)1", "(?<first>a)1", "(?:a|b)1", "(?i:A)1"])
def test_flags_and_groups_that_kube_scheduler_knows_are_served(pattern: str) -> None:
    assert verdict(f"{MINE}.model.matches('{pattern}')", device("d", attributes={"model": "a1"})) is True


def test_numbers_in_versions_are_as_large_as_kubernetes_lets_them_be() -> None:
    assert verdict("isSemver('1.0.0-18446744073709551615') && !isSemver('1.0.0-18446744073709551616')") is True
    assert verdict(f"isSemver('1.0.0-{'9' * 3000}')") is False


def test_a_quantity_counts_for_no_more_than_kubernetes_takes_any_to_be() -> None:
    assert verdict("quantity('1e999') == quantity('9223372036854775807') && quantity('1e999').isInteger()") is True


def test_patterns_that_backtrack_elsewhere_are_matched_in_linear_time() -> None:
    """Otherwise this test never ends."""
    hostile = device("d", attributes={"model": "a" * 63 + "!"})
    assert verdict(f'{MINE}.model.matches("^(a+)+$")', hostile) is False


def test_an_attribute_of_a_type_that_is_not_known_leaves_every_expression_without_an_answer() -> None:
    assert verdict("true", device("d", attributes={"odd": {"colour": "red"}})) == "an attribute has a type that is not supported"


@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        ("{mine}.sizes.includes(2) && !{mine}.sizes.includes(3)", True),
        ("2 in {mine}.sizes && {mine}.sizes.size() == 2", True),
        ("{mine}.names.exists(name, name.startsWith('b'))", True),
        ("{mine}.model.includes('T4') && !{mine}.model.includes('T40')", True),
        ("{mine}.releases.includes(semver('1.2.3'))", True),
        ("{mine}.switches.includes(1)", False),  # a truth value is no number
        ("{mine}.model == 'T4'", True),  # what is no list is served as before
    ],
)
def test_attributes_may_be_lists(expression: str, answer: bool) -> None:
    """Of DRAListTypeAttributes, alpha in 1.36: one such attribute made each selector fail on its device."""
    lists = {
        "sizes": {"ints": [1, 2]},
        "names": {"strings": ["ab", "bc"]},
        "switches": {"bools": [True]},
        "releases": {"versions": ["1.2.3"]},
    }
    assert verdict(expression.format(mine=MINE), device("d", attributes={**lists, "model": "T4"})) is answer


def test_devices_that_look_the_same_share_what_was_answered() -> None:
    shapes, kinds = DeviceShapes(), [{"index": 1}, {"index": 1}, {"index": True}, {"index": "1"}]
    made = [shapes.of(GPU, msgspec.json.decode(msgspec.json.encode(device("d", attributes=each)), type=Device)) for each in kinds]
    assert made[0] is made[1]
    assert len({id(each) for each in made}) == 3
    assert shapes.of("other", msgspec.json.decode(msgspec.json.encode(device("d", attributes=kinds[0])), type=Device)) is not made[0]


def test_compiled_expressions_are_kept_up_to_a_limit_and_failures_with_them() -> None:
    expressions = CompiledSelectors()
    first = expressions.get("true")
    assert expressions.get("true") is first
    for number in range(1100):
        expressions.get(f"{number} == {number}")
    assert expressions.get("true") is not first
    for _ in range(2):
        with pytest.raises(ExpressionError, match="undeclared"):
            expressions.get("nothing")


@seeds(range(150))
def test_questions_at_random_get_the_answers_of_a_plain_reading(seed: int) -> None:
    dice, asked = Dice(seed), random.Random(seed)
    shared = dice.device("d", counted=False)
    for _ in range(10):
        test = some_test(asked, DRIVERS)
        try:
            expected: bool | str = test.answer(shared, GPU)
        except NoAnswer:
            expected = "no such key"
        assert str(verdict(test.cel(), shared)).startswith(str(expected)), test.cel()
