"""`make unit` and `make test` try a fifth of the random cases of a property, `make test-all` tries all."""

from __future__ import annotations

import pytest

import randomcases
from randomcases import cases, some
from seeds import seeds


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in `make test`."""
    monkeypatch.setattr(randomcases._Run, "share", randomcases.QUICK_SHARE)


@pytest.fixture
def all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in `make test-all`."""
    monkeypatch.setattr(randomcases._Run, "share", 1)


@pytest.mark.usefixtures("all_of_them")
def test_a_run_tries_all_cases() -> None:
    assert (cases(200), cases(3), list(some(range(7)))) == (200, 3, [0, 1, 2, 3, 4, 5, 6])


@pytest.mark.usefixtures("few")
def test_a_quick_run_tries_a_fifth_and_no_property_on_fewer_than_four_cases() -> None:
    assert [cases(whole) for whole in (200, 30, 12, 3)] == [40, 6, 4, 3]
    assert cases(8, fewest=1) == 1
    assert list(some(range(12))) == [0, 5, 10]


@pytest.mark.usefixtures("few")
def test_a_quick_run_tries_a_fifth_of_the_seeds() -> None:
    @seeds(range(100, 150), at_once=6)
    def tries(seed: int) -> None:
        """Nothing."""

    (mark,) = tries.pytestmark  # type: ignore[attr-defined]
    assert mark.args == ("seed", [range(100, 106), range(106, 110)])
