"""Selectors in CEL that are refused: those that do not compile, and those that use what is not served."""

from __future__ import annotations

import random

import pytest
from selector_verdicts import A100, GPU, MINE, shape_of

from placewright.cel.syntax import ExpressionError
from placewright.plugins.dynamicresources.selectors import CompiledSelector
from randomcases import cases


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
        ("[1,2].all(a, [1,2].all(b, [1,2].all(c, true)))", "may take 4e+05 steps for one device, at most 20000 are allowed"),
        (f'{MINE}.model.matches("[^a]{{1000}}")', "may take 1e+05 steps for one device, at most 20000 are allowed"),
        (f'{MINE}.model.matches("\\\\pL{{30}}")', "may take 8e+04 steps for one device, at most 20000 are allowed"),
        (f'{MINE}.all(a, a.matches("a{{1,63}}"))', "may take 7e+04 steps for one device, at most 20000 are allowed"),
        (f"{MINE}.all(a, {MINE}.all(b, {MINE}[a] != {MINE}[b]))", "may take 8e+05 steps for one device, at most 20000 are allowed"),
    ],
)
def test_an_expression_that_does_not_compile_or_costs_too_much_is_refused(expression: str, said: str) -> None:
    with pytest.raises(ExpressionError) as refused:
        CompiledSelector(expression)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


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


PIECES = (
    *("device", ".attributes", f'["{GPU}"]', ".model", ".capacity", ".memory", ".ver", "(", ")", "[", "]", "{", "}", ",", "?", ":", ".?"),
    *("==", "!=", "<", "&&", "||", "!", "-", "+", "/", " in ", '"a"', "1", "2u", "1.5", "9223372036854775807", "true", "\n", "x"),
    *("has(", "size(", 'quantity("1")', "semver('1.0.0')", ".exists(x, ", ".map(x,", "cel.bind(x, ", ".matches('a+')", ".compareTo("),
    *("int(", "duration('1s')", r"r'\d'", ".split('')", ".add(", "0x", "'''", "__x", "Foo{a:1}", ".getFullYear()", "ä", "@"),
)


@pytest.mark.parametrize("seed", range(cases(20)))
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
