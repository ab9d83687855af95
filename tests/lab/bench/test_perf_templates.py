"""What scheduler_perf's templates become: results worked out by hand, and everything that is not known refused by name."""

from __future__ import annotations

import pytest

from placewright_lab.bench.schedulerperf.perfobjects import TemplateRefused, has_actions, render


@pytest.mark.parametrize(
    ("text", "index", "count", "becomes"),
    [
        ("plain", 0, 1, "plain"),
        ("name: pod-{{.Index}}", 3, 10, "name: pod-3"),
        ("{{ .Index }} of {{ .Count }}", 0, 7, "0 of 7"),
        ("zone-{{Mod .Index 25}}", 52, 100, "zone-2"),
        ("{{ DivideInt 30000 .Count }}", 0, 7, "4285"),
        ("{{DivideInt .Index 5}}", 14, 20, "2"),
        ("{{ AddInt 1 2 3 }}", 0, 1, "6"),
        ("{{ MultiplyInt .Index (AddInt .Count 1) }}", 2, 3, "8"),
        ("{{ SubtractInt 3 5 }}", 0, 1, "-2"),
        ("{{ (Mod .Index 3) }}", 5, 9, "2"),
        # Go cuts off towards zero, and its remainder has the sign of the first.
        ("{{ DivideInt -7 2 }}", 0, 1, "-3"),
        ("{{ Mod -7 3 }}", 0, 1, "-1"),
        ("{{ Mod 7 -3 }}", 0, 1, "1"),
        ("{{ AddInt 1.5 1.6 }}", 0, 1, "3"),
        ("{{ DivideFloat 1 4 }}", 0, 1, "0.25"),
        ("{{ DivideFloat 8 4 }}", 0, 1, "2"),
        ("{{ MultiplyFloat 0.5 .Count }}", 0, 3, "1.5"),
        ("{{ SubtractFloat 1 0.25 }} {{ AddFloat 1 1 }}", 0, 3, "0.75 2"),
    ],
)
def test_a_template_becomes_what_go_makes_of_it(text: str, index: int, count: int, becomes: str) -> None:
    assert render(text, index, count) == becomes


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{{ if .Index }}x{{ end }}", "the template word if is not known"),
        ("{{ .Name }}", "the template word .Name is not known"),
        ("{{ $x }}", "the template word $x is not known"),
        ("{{- .Index }}", "the template word - is not known"),
        ("{{ .Index | Mod 3 }}", "is not known: found '|'"),
        ("{{ printf 1 }}", "the template word printf is not known"),
        ("{{ Mod .Index }}", "the template function Mod does not take 1 arguments"),
        ("{{ DivideInt 1 2 3 }}", "the template function DivideInt does not take 3 arguments"),
        ("{{ DivideInt 1 0 }}", "divides by zero"),
        ("{{ Mod 1 0 }}", "divides by zero"),
        ("{{ AddInt (AddInt 1 2 }}", "a parenthesis in a template action is not closed"),
        ("{{ AddInt 1 ) }}", "found ')'"),
        ("{{ Mod .Index AddInt }}", "the template word AddInt is not known"),
        ("{{ }}", "a template action is empty"),
        ("{{ .Index", "a template action does not end"),
        ("{{ DivideFloat 1 30000 }}", "is written with an exponent"),
    ],
)
def test_what_is_not_known_is_refused_by_name(text: str, said: str) -> None:
    with pytest.raises(TemplateRefused) as refused:
        render(text, 1, 2)
    assert said in str(refused.value)


def test_a_template_without_actions_is_the_same_for_every_object() -> None:
    assert has_actions("{{.Index}}")
    assert not has_actions("a: {b: {c: 1}}")
