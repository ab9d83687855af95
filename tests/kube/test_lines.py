from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placewright.kube.listwatch import LineSplitter, LineTooLong


@given(st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"")), max_size=20), st.data())
def test_lines_are_the_same_however_the_stream_is_cut_into_chunks(lines: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(line + b"\n" for line in lines)
    splitter, found, position = LineSplitter(), [], 0
    while position < len(whole):
        step = data.draw(st.integers(1, len(whole) - position))
        found += splitter.feed(whole[position : position + step])
        position += step
    assert found == [line for line in lines if line]
    assert splitter.feed(b"\n") == [], "nothing is left over"


def test_a_line_without_an_end_waits_for_it() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"whole\nhal") == [b"whole"]
    assert splitter.feed(b"f\n") == [b"half"]


def test_a_line_of_many_megabytes_in_small_chunks_comes_out_whole() -> None:
    splitter = LineSplitter()
    for _ in range(1000):
        assert splitter.feed(b"x" * 10_000) == []
    assert [len(line) for line in splitter.feed(b"\n")] == [10_000_000]


def test_a_line_beyond_the_limit_is_refused_instead_of_filling_memory() -> None:
    splitter = LineSplitter(limit=100)
    for _ in range(10):
        splitter.feed(b"x" * 10)
    with pytest.raises(LineTooLong):
        splitter.feed(b"x")
