"""Errors that end a cycle without a verdict about the pod, or keep a plugin from being built."""

from __future__ import annotations

from typing import Final

#: Characters of a problem that are told. The text of an exception may be a page, and events hold 1024 characters.
_MOST: Final = 500


class CycleError(Exception):
    """A plugin broke. The attempt ends as an error: the pod backs off by the count of its errors in a row, and no plugin is blamed."""


class PluginError(CycleError):
    """A plugin raised, or answered what its extension point does not allow; the message names both, in one line.

    Attributes:
        plugin: its name.
        point: the extension point, as kube-scheduler names it.
        problem: the failure, without these names.
        counted: True once it is among the plugin's failures.
    """

    def __init__(self, plugin: str, point: str, problem: str) -> None:
        self.plugin = plugin
        self.point = point
        self.problem = problem
        self.counted = False
        super().__init__(f'running {point} plugin "{plugin}": {problem}')


class PluginBuildError(PluginError):
    """A plugin could not be built; the profile that wants it is not taken."""

    def __init__(self, plugin: str, problem: str) -> None:
        super().__init__(plugin, "New", problem)
        self.args = (f'initializing plugin "{plugin}": {problem}',)


class PluginRegistrationError(Exception):
    """A plugin cannot be registered; `plugin` names it, and `problem` says why."""

    def __init__(self, plugin: str, problem: str) -> None:
        super().__init__(f"plugin {plugin}: {problem}")
        self.plugin = plugin
        self.problem = problem


class InvalidScoreError(CycleError):
    """A plugin returned a score outside 0..100."""


def raised(problem: BaseException) -> str:
    """Put into one line what a plugin raised.

    Args:
        problem: an exception of any class; its `__str__` may raise, too.

    Returns:
        `ValueError: no such zone`, at most 500 characters, because an event of Kubernetes holds 1024.
    """
    kind = type(problem).__name__
    try:
        said = " ".join(str(problem).split())
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - the exception's class is its author's
        said = ""
    text = f"{kind}: {said}" if said else kind
    return text if len(text) <= _MOST else text[: _MOST - 1] + "…"
