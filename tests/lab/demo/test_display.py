"""What a person sees, on a terminal and without one."""

from __future__ import annotations

import dataclasses
import io

import numpy as np
from rich.console import Console

from placewright_lab.demo.display import LiveProgress, PlainProgress, make_progress, show_notes, show_summary
from placewright_lab.demo.summary import Generation, RunState, Speed, State, Summary
from placewright_lab.figures.figures import Reason, ResourceUse


def console(*, terminal: bool = False) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=100, legacy_windows=False, color_system=None)


def text_of(shown: Console) -> str:
    assert isinstance(shown.file, io.StringIO)
    return shown.file.getvalue()


def snapshot(placed: int, elapsed: float = 1.0) -> RunState:
    states = {State.PLACED: placed, State.WAITING: 10 - placed, State.UNSCHEDULABLE: 2}
    return RunState(elapsed, 12, 12, states, {("default", 1): placed}, float(placed))


def cpu(nodes: int, empty: int, *shares: float) -> ResourceUse:
    """Use of CPU: min, mean, max and standard deviation."""
    return ResourceUse("cpu", np.array([0.0] * empty + [0.5] * (nodes - empty)), 0, 0, *shares)


def summary(reason: str = "0/1 nodes are available: 1 Insufficient cpu.", profile: str = "default") -> Summary:
    use = {"cpu": cpu(2, 0, 0.1, 0.2, 0.3, 0.1)}
    return Summary(
        nodes=2,
        pods=3,
        states={State.PLACED: 2, State.UNSCHEDULABLE: 1},
        generations=[Generation(profile, 1, 2, use)],
        use=use,
        speed=Speed(123.4, 0.05, 1.5),
        reasons=[Reason("Insufficient cpu", 1, reason)],
    )


def test_without_a_terminal_progress_is_plain_lines_and_only_when_something_changed() -> None:
    shown = console()
    with make_progress(shown) as progress:
        assert isinstance(progress, PlainProgress)
        progress.update(snapshot(1, 1.0))
        progress.update(snapshot(1, 2.0))
        progress.update(snapshot(2, 3.0))
    lines = text_of(shown).splitlines()
    assert [line.split()[0] for line in lines] == ["1.0s", "3.0s"]
    assert "placed 2  unschedulable 2  default gen. 1: 2" in lines[1]
    assert "\x1b" not in text_of(shown)


def test_on_a_terminal_progress_is_live_and_the_cursor_comes_back() -> None:
    shown = console(terminal=True)
    with make_progress(shown) as progress:
        assert isinstance(progress, LiveProgress)
        progress.update(snapshot(5))
        progress.say("something happened")
    text = text_of(shown)
    assert "placed 5" in text
    assert "something happened" in text
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1


def test_the_summary_names_counts_speed_use_and_reasons() -> None:
    shown = console()
    show_summary(shown, summary(), "half-way: something\nand more")
    text = text_of(shown)
    for part in (
        "3 pods on 2 nodes: 2 placed, 1 unschedulable",
        "123 pods/s",
        "p50 50 ms, p99 1.50 s",
        "half-way: something\nand more\n",
        "default gen. 1",
        "10.0 │ 20.0 │ 30.0",
        "     1  Insufficient cpu\n        such as: 0/1 nodes are available: 1 Insufficient cpu.\n",
    ):
        assert part in text


def test_a_sentence_says_whether_the_change_packs_or_spreads() -> None:
    spread, packed, alike = cpu(9, 0, 0.25, 0.3, 0.375, 0.027), cpu(9, 3, 0.0, 0.3, 0.719, 0.34), cpu(9, 0, 0.2, 0.3, 0.4, 0.04)
    for before, after, said in (
        (
            spread,
            packed,
            "Spread became packed: of 9 nodes, pods of default gen. 2 leave 3 empty, pods of default gen. 1 left 0. "
            "They fill 0 to 72 % of a node's cpu, and filled 25 to 38 %.",
        ),
        (
            packed,
            spread,
            "Packed became spread: of 9 nodes, pods of default gen. 2 leave 0 empty, pods of default gen. 1 left 3. "
            "They fill 25 to 38 % of a node's cpu, and filled 0 to 72 %.",
        ),
        (spread, alike, ""),
    ):
        shown = console()
        generations = [Generation("default", number, 2, {"cpu": use}) for number, use in ((1, before), (2, after))]
        show_summary(shown, dataclasses.replace(summary(), generations=generations))
        assert [line for line in text_of(shown).splitlines() if " became " in line] == ([said] if said else [])


def test_text_from_pods_can_neither_move_the_cursor_nor_use_markup() -> None:
    for terminal in (False, True):
        shown = console(terminal=terminal)
        show_summary(shown, summary("[red]\x1b[2Jevil\x07\u202e[/red]", "[bold]p\x1b]0;x\x07"), "")
        text = text_of(shown)
        assert "[red]\\x1b[2Jevil\\x07\\u202e[/red]" in text
        assert "[bold]p\\x1b" in text
        for raw in ("\x1b[2J", "\x1b]0", "\x07", "\u202e"):
            assert raw not in text


def test_many_notes_become_a_dozen_and_a_count() -> None:
    said: list[str] = []
    show_notes(said.append, [str(i) for i in range(100)], "note")
    assert (len(said), said[0], said[-1]) == (13, "note: 0", "note: and 88 more")
