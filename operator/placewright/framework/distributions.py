"""The distributions beside the operator's: whether one is installed in the operator's version, and what to do if not.

They come from one repository and are released together, so only equal versions fit each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from placewright import __version__

#: Commands of each distribution, by its folder in the repository. A person who has the operator alone learns where a command is.
COMMANDS: Final[Mapping[str, frozenset[str]]] = {
    "console": frozenset({"console"}),
    "lab": frozenset({"bench", "compare", "demo", "diff", "evaluate", "record", "sandbox", "simulate", "snapshot", "tune"}),
}

#: Folders that are installed together, as each asks for those before it.
_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {"console": ("console",), "lab": ("console", "lab")}


def lacking(name: str) -> str:
    """Find out whether a distribution can be used.

    Returns:
        Why it cannot be used and what to install, in one line; empty if it can.
    """
    distribution = f"placewright-{name}"
    try:
        found = version(distribution)
    except PackageNotFoundError:
        return f"{distribution} is not installed: {how_to_install(name)}"
    return "" if found == __version__ else f"{distribution} is {found}, and placewright is {__version__}: {how_to_install(name)}"


def how_to_install(name: str) -> str:
    """Say how a distribution is installed: from its folder, because an index may have one of the same name by other authors."""
    return f"in a clone of Placewright {__version__}, run pip install . {' '.join(f'./{each}' for each in _NEEDED[name])}"


def home_of(command: str) -> str | None:
    """Find the distribution of a command.

    Args:
        command: the first word after `placewright`.

    Returns:
        The folder of the distribution; None for a command of none.
    """
    return next((name for name, commands in COMMANDS.items() if command in commands), None)
