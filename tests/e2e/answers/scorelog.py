"""kube-scheduler 1.20's log at verbosity 10: who scored what.

Two kinds of lines count: `Plugin NAME scores on NAMESPACE/POD => [{NODE SCORE} ...]`, weighted, and `add event for` a node or a scheduled
pod.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

#: By plugin, by node.
Scores = dict[str, dict[str, int]]

_SCORES: Final = re.compile(r"\] Plugin (\S+) scores on (\S+) => \[(.*)\]$")
_ONE: Final = re.compile(r"\{(\S+) (-?\d+)\}")
_ADDED: Final = re.compile(r"\] add event for (?:scheduled pod|node) \"?([^\s\"]+)")


def scores_in(log: Path) -> dict[str, Scores]:
    """By pod (namespace/name), the weighted scores of its last attempt; nothing for pods that fitted at most one node."""
    found: dict[str, Scores] = {}
    for line in _lines(log):
        if match := _SCORES.search(line):
            plugin, pod, scores = match.groups()
            found.setdefault(pod, {})[plugin] = {node: int(score) for node, score in _ONE.findall(scores)}
    return found


def known_in(log: Path) -> list[str]:
    """The nodes (name) and assigned pods (namespace/name) that it has heard of, in that order."""
    return [match[1] for line in _lines(log) if (match := _ADDED.search(line))]


def _lines(log: Path) -> list[str]:
    return log.read_text(errors="replace").splitlines()
