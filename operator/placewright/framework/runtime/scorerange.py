"""The range of scores: after normalisation 0 to 100, as kube-scheduler demands. A score outside ends the attempt as an error."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from placewright.framework.errors import InvalidScoreError
from placewright.framework.interface import MAX_NODE_SCORE, ScorePlugin
from placewright.framework.runtime.failures import PluginFailures
from placewright.framework.steps import SCORE

#: Number of scores up to which they are compared one by one: cheaper than two reductions.
_FEW: Final = 16


def check_range(plugin: ScorePlugin, scores: NDArray[np.signedinteger[Any]], failures: PluginFailures) -> None:
    """Refuse scores outside 0 to 100, and count the failure.

    The message is kube-scheduler's, word for word.

    Args:
        plugin: the plugin that gave them.
        scores: scores of feasible rows, after normalisation; any shape (k,).
        failures: counts the failure.

    Raises:
        InvalidScoreError: a score is outside.
    """
    if len(scores) == 0:
        return
    values = scores.tolist() if len(scores) <= _FEW else (scores.min(), scores.max())
    low, high = min(values), max(values)
    if low < 0 or high > MAX_NODE_SCORE:
        wrong = low if low < 0 else high
        failures.note(plugin.name, SCORE, f"found score {wrong}; allowed 0 to {MAX_NODE_SCORE}")
        raise InvalidScoreError(
            f'plugin "{plugin.name}" returns an invalid score {wrong}, it should in the range of [0, {MAX_NODE_SCORE}] after normalizing'
        )
