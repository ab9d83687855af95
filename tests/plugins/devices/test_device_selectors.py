"""Selectors in CEL: what they may say, what they come to, and which are refused, with the object and the field."""

from __future__ import annotations

import contextlib
import json
import random
from typing import Any

import hypothesis
import msgspec
import pytest
from device_selectors import NoAnswer, some_test
from device_worlds import (
    DRIVERS,
    Dice,
    claim,
    cluster_of,
    device,
    device_class,
    devices_of,
    exactly,
    given,
    read,
    read_claim,
    result,
    slice_of,
    table,
    wish,
    world,
)
from hypothesis import strategies as st
from test_device_order import ask, message, names

from placewright.api.devices import Device
from placewright.cel.syntax import ExpressionError, tree
from placewright.framework.status import Code
from placewright.plugins.dynamicresources.selectors import (
    CompiledSelector,
    CompiledSelectors,
    DeviceShapes,
    steps_for_a_device,
)
from seeds import seeds

Body = dict[str, Any]
GPU = DRIVERS[0]
MINE = f'device.attributes["{GPU}"]'
MEMORY = f'device.capacity["{GPU}"].memory'
VERSION = {"version": "1.10.0-rc.1+build"}
ATTRIBUTES = {"model": "a100", "numa": 3, "fast": True, "ver": VERSION, "other.example.com/rank": 7, "name": "über"}
A100 = device("gpu-0", attributes=ATTRIBUTES, capacity={"memory": "40Gi", "other.example.com/cores": "1500m"})


def shape_of(body: Body, driver: str = GPU) -> Any:
    return DeviceShapes().of(driver, msgspec.json.decode(msgspec.json.encode(body), type=Device))


def verdict(expression: str, body: Body = A100) -> bool | str:
    answer: bool | str = shape_of(body).matches(CompiledSelector(expression))
    return answer


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


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("true ==", "does not compile: "),
        ("", "does not compile: "),
        ('"open', """does not compile: unexpected '"' at character 1"""),
        ("(true", "does not compile: '(' is never closed"),
        ("true)", "does not compile: unexpected ')'"),
        ("foo == 1", "does not compile: undeclared reference to foo"),
        ("__size('a') == 1", "undeclared name __size"),
        ("device == 1", "device can only be used as device.driver, "),
        ("device.model == 1", "device can only be used as device.driver, "),
        ("size(device.attributes) == 1", "device.attributes can only be used with a domain, as in "),
        ("cel.bind(a, device.attributes, true)", "device.attributes can only be used with a domain, as in "),
        ("[1].exists(device, true)", "the name device cannot be given to something else"),
        (f"{MINE}.model.reverse() == 'a'", "the function reverse is not supported"),
        ('cidr("10.0.0.0/8").containsIP("10.0.0.1")', "the function cidr is not supported"),
        (f'{MINE}.?model.orValue("a") == "a"', "optional fields (.?) are not supported; ask has(...) first"),
        ("cel.block([1], true)", "of cel, only cel.bind(name, value, expression) is supported"),
        (f"{MINE}.model.matches({MINE}.name)", "matches() with a pattern that is not a literal is not supported"),
        (f'{MINE}.model.matches("{"a" * 300}")', "matches() with a pattern of more than 256 characters is not supported"),
        (f'{MINE}.model.matches("((a{{50}}){{50}}){{50}}")', "may take 6e+06 steps for one device, at most 20000 are allowed"),
        ("true || " * 2000 + "true", "is 16004 characters long, at most 10240 are allowed"),
        ("+1" * 1500 + " == 1", "consists of 3002 tokens, this scheduler evaluates at most 2000"),
        ("(" * 60 + "true" + ")" * 60, "nests brackets deeper than 40"),
        ("[1,2].all(a, [1,2].all(b, [1,2].all(c, true)))", "may take 1e+05 steps for one device, at most 20000 are allowed"),
        (f'{MINE}.model.matches("[^a]{{1000}}")', "may take 1e+05 steps for one device, at most 20000 are allowed"),
        (f'{MINE}.model.matches("\\\\pL{{30}}")', "may take 8e+04 steps for one device, at most 20000 are allowed"),
        (f'{MINE}.all(a, a.matches("a{{1,63}}"))', "may take 5e+04 steps for one device, at most 20000 are allowed"),
        (f"{MINE}.all(a, {MINE}.all(b, {MINE}[a] != {MINE}[b]))", "may take 3e+05 steps for one device, at most 20000 are allowed"),
    ],
)
def test_an_expression_that_does_not_compile_or_costs_too_much_is_refused(expression: str, said: str) -> None:
    with pytest.raises(ExpressionError) as refused:
        CompiledSelector(expression)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


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


@pytest.mark.parametrize(
    ("expression", "named"),
    [
        ("device.?driver.orValue('a') == 'a'", ".?"),
        ("[1][?0].orValue(1) == 1", "[?"),
        ("optional.of(1).hasValue()", "optional"),
        ("optional.none().hasValue()", "optional"),
        ("'abc'.find('b') == 'b'", "find"),
        ("'abc'.findAll('b') == ['b']", "findAll"),
        ("url('https://a.example.com').getHost() == 'a.example.com'", "url"),
        ("isURL('https://a.example.com')", "isURL"),
        ("ip('10.0.0.1').family() == 4", "ip"),
        ("isIP('10.0.0.1')", "isIP"),
        ("cidr('10.0.0.0/8').containsIP('10.0.0.1')", "cidr"),
        ("isCIDR('10.0.0.0/8')", "isCIDR"),
        ("'%d'.format([1]) == '1'", "format"),
        ("format.named('dns1123Label').value().hasValue()", "format"),
        ("math.greatest(1, 2) == 2", "math"),
        ("strings.quote('a') == 'a'", "strings"),
        ("'abc'.reverse() == 'cba'", "reverse"),
        ("[[1]].flatten() == [1]", "flatten"),
        ("[1].first().hasValue()", "first"),
        ("base64.encode(b'a') == 'YQ=='", "base64"),
        ("sets.union([1], [2]) == [1, 2]", "of sets, only sets.contains, sets.equivalent, sets.intersects are supported"),
        ("cel.block([1], true)", "of cel, only cel.bind"),
    ],
)
def test_functions_that_are_not_served_are_refused_by_name(expression: str, named: str) -> None:
    with pytest.raises(ExpressionError) as refused:
        CompiledSelector(expression)
    assert named in str(refused.value)


def doubled(levels: int) -> str:
    """A text that doubles with each level."""
    inner = "true"
    for level in reversed(range(levels)):
        value = f"v{level - 1}" if level else "'x'"
        inner = f"cel.bind(v{level}, {value} + {value}, {inner})"
    return inner


def test_text_that_doubles_is_refused_before_it_fills_the_memory() -> None:
    assert verdict(doubled(2)) is True
    with pytest.raises(ExpressionError, match="may take"):
        CompiledSelector(doubled(30))


def bound(text: str, asked: str, times: int = 1) -> str:
    """A text by the name t, and something asked of it so many times."""
    return f'cel.bind(t, "{text}", {" || ".join([asked] * times)} || true)'


def steps(expression: str) -> int:
    return steps_for_a_device(tree(expression))


ON_TEXT = (
    "t.lowerAscii() == 'b'", "t.upperAscii() == 'b'", "t.indexOf('b') == 1", "t.lastIndexOf('b') == 1", "t.split('b') == []",
    "isQuantity(t)", "isSemver(t)", "t.matches('a')", "t.trim() == 'b'", "t.substring(1) == 'b'", "duration(t) == 1",
    "timestamp(t) == 1", "t.contains('b')",
)  # fmt: skip


@pytest.mark.parametrize("asked", ON_TEXT)
def test_what_is_done_with_a_text_weighs_by_its_length(asked: str) -> None:
    assert steps(bound("a" * 200, asked)) > steps(bound("a" * 90, asked)) == steps(bound("a", asked))
    with pytest.raises(ExpressionError, match="may take"):
        steps(bound("a" * 7000, asked, 100))


LARGE = (r"[!-😀]", r"[\x00-\x{10FFFF}]", r"[a\u0100-\uffff]", r"[^x!-é]", r"[[a]!-😀]", r"[\S]", r"[x\D]", r"[^\W]", r"\p{any}", r"\PL",
         r"[\pL]")  # fmt: skip


@pytest.mark.parametrize("large", LARGE)
@pytest.mark.parametrize("around", ["(?i)%s", "(?i:%s)", "a(?si:b)c%s*", "(?i)[a-z]+%s?", "%s(?i)"])
def test_sets_that_may_span_all_of_unicode_are_not_folded(large: str, around: str) -> None:
    """The library looks up the other case of each of their characters when it builds the pattern, which is each time."""
    pattern = json.dumps(around % large, ensure_ascii=False)
    with pytest.raises(ExpressionError, match="may take"):
        CompiledSelector(f"{MINE}.model.matches({pattern})")


@pytest.mark.parametrize(
    "pattern", [r"(?i)^nvidia-a\d+$", r"(?i)[a-z0-9_.-]+", r"(?i)(a100|h100)\S*", r"(?i)[éü]", r"[!-😀]", r"\p{Greek}|[\S]"]
)
def test_sets_that_are_small_or_not_folded_are_served(pattern: str) -> None:
    assert verdict(f"{MINE}.model.matches({json.dumps(pattern, ensure_ascii=False)})") in (True, False)


def nested(levels: int, inner: str) -> str:
    for level in range(levels):
        inner = f"[[1]].map(y{level}, {inner})"
    return f"{inner}.size() == 1"


TOWERS = {
    "sums of lists": "[[2]" + "+[2]" * 300 + "]",
    "sums of texts": "'a'" + "+'aaaa'" * 300,
    "replacing": '"a"' + '.replace("", "aaaaaaaaaaaaaaaaaaaaaaaa")' * 150,
    "splitting and joining": '"a"' + '.split("").join("bbbb")' * 100,
    "filters": "[1]" + ".filter(z, [1].map(w, w) == [2])" * 50,
}


@pytest.mark.parametrize("tower", TOWERS)
@pytest.mark.parametrize("levels", [0, 1, 2, 5, 18, 30])
def test_what_grows_beyond_all_numbers_is_refused_like_what_grows_a_little(tower: str, levels: int) -> None:
    """The estimate is a product of powers: it must not leave the range of numbers itself."""
    with pytest.raises(ExpressionError, match=r"may take|deeper|characters long|tokens"):
        CompiledSelector(nested(levels, TOWERS[tower]) + (" && " + nested(0, TOWERS[tower])) * 2)


GROWTH = (
    "+ {0}", ".map(v{1}, [{0}])", ".filter(v{1}, true)", '.replace("", "{2}")', '.split("")', '.join("{2}")', ' + "{2}"', " + [{0}]",
    ".all(v{1}, [{0}].size() > 0)", ".exists(v{1}, {0} == {0})", '.matches("({2}){{9}}")', ".sum()", ".contains({0})", ".indexOf({0})",
)  # fmt: skip


@hypothesis.settings(max_examples=150, deadline=None)
@hypothesis.given(
    begin=st.sampled_from(['"a"', "[1]", "[[1]]", '["a"]', f"{MINE}.model", "1"]),
    growth=st.lists(st.tuples(st.sampled_from(GROWTH), st.integers(1, 60)), max_size=6),
    levels=st.integers(0, 38),
)
def test_whatever_grows_out_of_whatever_is_weighed_or_refused(begin: str, growth: list[tuple[str, int]], levels: int) -> None:
    """The estimate itself ends, in numbers that there are: nothing but a refusal comes of it."""
    made = begin
    for step, times in growth:
        for turn in range(times):
            more = step.format(begin, turn, "b" * 20)
            if len(made) + len(more) > 9_000:
                break
            made += more
    with contextlib.suppress(ExpressionError):
        assert 0 < steps(nested(levels, made)) <= 20_000


@pytest.mark.parametrize("letter", ["a", "Z", "é", "ß", "İ", "ﬁ", "😀", "\u0000", "ǅ"])
def test_only_letters_of_ascii_have_another_case(letter: str) -> None:
    text = f"x{letter}Y" * 3
    lower = "".join(chr(ord(c) + 32) if "A" <= c <= "Z" else c for c in text)
    upper = "".join(chr(ord(c) - 32) if "a" <= c <= "z" else c for c in text)
    assert verdict(f"{json.dumps(text, ensure_ascii=False)}.lowerAscii() == {json.dumps(lower, ensure_ascii=False)}") is True
    assert verdict(f"{json.dumps(text, ensure_ascii=False)}.upperAscii() == {json.dumps(upper, ensure_ascii=False)}") is True


def test_replacing_weighs_by_what_it_may_make_of_a_text() -> None:
    same = steps(f"{MINE}.model.replace('a', 'b') == 'c'")
    assert steps(f"{MINE}.model.replace('a', 'bcd') == 'c'") > same
    assert steps(f"{MINE}.model.replace('', 'b') == 'c'") > same
    for growing in (f"{MINE}.model.replace({MINE}.name, {MINE}.name) == 'c'", f"{MINE}.model.replace('', {MINE}.name) == 'c'"):
        with pytest.raises(ExpressionError, match="may take"):
            steps(growing)
    with pytest.raises(ExpressionError, match="may take"):
        steps(bound("a" * 60, "t.replace('', '" + "b" * 60 + "').replace('', t) == 'c'"))


def test_texts_that_are_summed_up_weigh_as_their_sum() -> None:
    long = " + ".join([f'"{"a" * 300}"'] * 20)
    assert steps(f"({long}).lowerAscii() == 'b'") > 20 * 300 * 0.1
    assert steps("['a'].join('b').lowerAscii() == 'b'") > steps("'ab'.lowerAscii() == 'b'")


@pytest.mark.parametrize(
    "pattern",
    [
        r"'\\w{900}'",
        r"'\\w\u007b900\u007d'",
        r"'\\w\U0000007b900\x7d'",
        r"'\\w\173900\175'",
        r"'\u005cw{900}'",
        r"r'\w{900}'",
        r'R"""\w{900}"""',
        r"'\x5cpL{900}'",
        r"'(?:\\w\u007b30\u007d){30}'",
        r"'\\w{,900}'",
        r"'\\b{900}'",
        r"'(?i)\\w{900}'",
    ],
)
def test_repetitions_are_counted_however_they_are_written(pattern: str) -> None:
    with pytest.raises(ExpressionError, match="may take"):
        CompiledSelector(f"{MINE}.model.matches({pattern})")


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        (r"'(?x)\\w{#\n900}'", "flags x"),
        (r"r'(?ix)a'", "flags ix"),
        (r"'\u0028?x)a'", "flags x"),
        (r"'a(?x:b c)'", "flags x"),
        (r"'(?i-x)a'", "flags i-x"),
        (r"'(?u)a'", "flags u"),
        (r"'(?R)a'", "flags R"),
        (r"'(?=a)'", "followed by something else"),
        (r"b'a'", "bytes are not text"),
        (r"'\q'", "is no escape"),
        (r"'\U00110000'", "is no escape"),
    ],
)
def test_a_pattern_is_read_as_the_library_reads_it_or_refused(pattern: str, said: str) -> None:
    with pytest.raises(ExpressionError, match=said):
        CompiledSelector(f"{MINE}.model.matches({pattern})")


@pytest.mark.parametrize("pattern", ["^a1", "(?i)^A1", "(?s).*1.*", "(?P<first>a)1", "(?<first>a)1", "(?:a|b)1", "(?i:A)1"])
def test_flags_and_groups_that_kube_scheduler_knows_are_served(pattern: str) -> None:
    assert verdict(f"{MINE}.model.matches('{pattern}')", device("d", attributes={"model": "a1"})) is True


@pytest.mark.parametrize(
    "expression",
    [
        "cel.bind(l, [1, 2], l.map(x, l) == [])",
        "[1, 2].map(x, [x]) == []",
        "cel.bind(l, [[1], [2]], l.map(x, x) == l)",
        "[1, 2].map(x, {'a': x}) == []",
        f"{MINE}.map(k, {MINE}) == []",
        "['a'].map(x, x.split('b')) == []",
    ],
)
def test_lists_of_lists_are_too_much_where_they_are_made_in_rounds(expression: str) -> None:
    """The library copies them whole in each round."""
    with pytest.raises(ExpressionError, match="may take"):
        CompiledSelector(expression)


@pytest.mark.parametrize(
    "expression",
    [f"{MINE}.map(k, k).size() > 0", "['a', 'b'].filter(x, x == 'a') == ['a']", f"[{MINE}.model, 'a'].exists(x, x == 'a')"],
)
def test_lists_of_plain_values_are_not(expression: str) -> None:
    assert verdict(expression) is True


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
    assert verdict("true", device("d", attributes={"odd": {"ints": [1]}})) == "an attribute has a type that is not supported"


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


# --- objects and fields in messages ------------------------------------------------------------------------------------------


def said_of(claim_: Body, **more: Any) -> str:
    devices = devices_of(cluster_of(world(slice_of(A100), **more)))
    status = devices.check([read_claim(claim_)])
    assert status.code is (Code.UNSCHEDULABLE_AND_UNRESOLVABLE if status.reasons else Code.SUCCESS)
    return status.message


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (claim(exactly("r")), ""),
        (claim(exactly("r", "none")), "request r: device class none does not exist"),
        (claim({"name": "r", "firstAvailable": [wish(), {**wish("X"), "name": "s1"}]}), "request r/s1: device class X does not exist"),
        (claim(exactly("r", "")), "resource claim default/c, request r: missing device class name (unsupported request type?)"),
        (claim({"name": "r"}), "resource claim default/c, request r: unknown request type"),
        (
            claim(exactly("r"), exactly("s", "any", "true", "foo == 1")),
            "resource claim default/c: spec.devices.requests[1].exactly.selectors[1].cel.expression: "
            "does not compile: undeclared reference to foo",
        ),
        (claim(exactly("r", "bad")), "device class bad: spec.selectors[0].cel.expression: does not compile: undeclared reference to bar"),
        (
            claim({"name": "r", "firstAvailable": [{"name": "s", "deviceClassName": "any", "selectors": [{"cel": {"expression": "x"}}]}]}),
            "resource claim default/c: spec.devices.requests[0].firstAvailable[0].selectors[0].cel.expression: "
            "does not compile: undeclared reference to x",
        ),
        (
            claim({"name": "r", "exactly": {"deviceClassName": "any", "selectors": [{"wasm": {}}]}}),
            "resource claim default/c: spec.devices.requests[0].exactly.selectors[0] is of a kind that is not supported",
        ),
        (
            claim(exactly("r", allocationMode="Most")),
            "resource claim default/c, request r: spec.devices.requests[0].exactly.allocationMode Most is not supported",
        ),
        (
            claim(exactly("r", count=0)),
            "resource claim default/c, request r: spec.devices.requests[0].exactly.count is 0, must be at least 1",
        ),
        (
            claim(exactly("r", capacity={"requests": {"memory": "much"}})),
            "resource claim default/c, request r: spec.devices.requests[0].exactly.capacity.requests: 'much' is not a quantity; "
            "expected a number with an optional suffix such as 250m, 2, 1.5Gi or 1e3",
        ),
        (
            claim(exactly("r"), constraints=[{"sameRack": True}]),
            "resource claim default/c: spec.devices.constraints[0] is of a kind that is not supported",
        ),
        (
            claim(exactly("r", count=20), exactly("s", count=13)),
            "claim default/c: number of requested devices 33 exceeds the claim limit of 32",
        ),
    ],
)
def test_what_is_wrong_with_a_claim_is_said_with_the_object_and_the_field(asked: Body, said: str) -> None:
    assert said_of(asked, classes=[device_class("bad", "bar")]) == said


def test_a_class_that_comes_later_is_found() -> None:
    cluster = cluster_of(world(slice_of(A100)))
    devices, asked = devices_of(cluster), [read_claim(claim(exactly("r", "late")))]
    assert not devices.check(asked).ok
    table(cluster, "classes").put(read("classes", device_class("late", "true")))
    devices.refresh()
    assert devices.check(asked).ok
    table(cluster, "classes").put(read("classes", {**device_class("late", "false"), "metadata": {"name": "late", "resourceVersion": "2"}}))
    devices.refresh()
    assert message(devices.allocate(0, asked)) == "cannot allocate all claims"


@pytest.mark.parametrize(
    ("asked", "where"),
    [
        (claim(exactly("r", "any", f"{MINE}.colour")), "claim default/c: selector #0"),
        (claim(exactly("r", "any", "true", f"{MINE}.colour")), "claim default/c: selector #1"),
        (claim(exactly("r", "picky")), "class picky: selector #0"),
    ],
)
def test_a_selector_without_an_answer_is_an_error_in_the_words_of_kube_scheduler(asked: Body, where: str) -> None:
    made = world(slice_of(A100), classes=[device_class("picky", f"{MINE}.colour")])
    assert message(ask(made, asked)) == f"error: {where}: CEL runtime error: no such key: colour"


def test_a_selector_is_not_asked_about_devices_after_the_one_that_is_taken_nor_of_those_in_use() -> None:
    plain, picky = device("b", attributes={"fast": True}), claim(exactly("r", "any", f"{MINE}.fast"))
    assert names(ask(world(slice_of(plain, device("c"))), picky)) == [["r:b"]]
    held = [given(claim(name="x"), result("a"))]
    assert names(ask(world(slice_of(device("a"), plain), claims=held), picky)) == [["r:b"]]
    assert "no such key" in message(ask(world(slice_of(device("a"), plain)), picky))


def test_a_selector_without_an_answer_comes_before_a_later_request_that_cannot_be_served() -> None:
    asked = claim(exactly("r", "any", f"{MINE}.fast"), exactly("s", count=9))
    assert "no such key: fast" in message(ask(world(slice_of(device("a"))), asked))


# --- anything at all ---------------------------------------------------------------------------------------------------------

PIECES = (
    *("device", ".attributes", f'["{GPU}"]', ".model", ".capacity", ".memory", ".ver", "(", ")", "[", "]", "{", "}", ",", "?", ":", ".?"),
    *("==", "!=", "<", "&&", "||", "!", "-", "+", "/", " in ", '"a"', "1", "2u", "1.5", "9223372036854775807", "true", "\n", "x"),
    *("has(", "size(", 'quantity("1")', "semver('1.0.0')", ".exists(x, ", ".map(x,", "cel.bind(x, ", ".matches('a+')", ".compareTo("),
    *("int(", "duration('1s')", r"r'\d'", ".split('')", ".add(", "0x", "'''", "__x", "Foo{a:1}", ".getFullYear()", "ä", "@"),
)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_written_is_answered_or_refused_in_one_line(seed: int) -> None:
    dice, shape = random.Random(seed), shape_of(A100)
    for _ in range(150):
        written = "".join(dice.choice(PIECES) for _ in range(dice.randint(1, 12)))
        source = written + ")" * written.count("(") * dice.randint(0, 1)
        try:
            said = shape.matches(CompiledSelector(source))
        except ExpressionError as refused:
            said = str(refused)
        assert isinstance(said, bool) or (said and "\n" not in said and len(said) < 400), source
