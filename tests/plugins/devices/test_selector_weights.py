"""Selectors in CEL are weighed before they are compiled: those that may take too many steps for a device are refused."""

from __future__ import annotations

import contextlib
import json

import hypothesis
import pytest
from hypothesis import strategies as st
from selector_verdicts import MINE, verdict

from placewright.cel.syntax import ExpressionError, tree
from placewright.plugins.dynamicresources.selectors import CompiledSelector, steps_for_a_device
from randomcases import cases


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


@hypothesis.settings(max_examples=cases(150), deadline=None)
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
