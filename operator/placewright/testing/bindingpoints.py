"""The extension points after a node was chosen, and PostFilter: called once each, for the shape of their answers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final

from placewright.api.errors import BindError, ClaimError, VolumeError
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.errors import CycleError, PluginError
from placewright.framework.interface import (
    BindPlugin,
    CycleState,
    PermitPlugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    ReservePlugin,
)
from placewright.framework.runtime.evaluation import Evaluator
from placewright.testing.pluginanswers import PodAnswers, checked
from placewright.testing.pluginreport import CaseCounts, Promise
from placewright.testing.virtualtime import in_loop

#: Seconds after which a PreBind or Bind is ended: without an API server, the event that it waits for never comes.
_PATIENCE_SECONDS: Final = 0.2
#: Errors that the ports of an evaluation without an API server raise. A plugin may pass them on.
_NO_API_SERVER: Final = (BindError, ClaimError, VolumeError)


class BindingPoints:
    """Calls a guarded plugin at PreEnqueue, PostFilter, Reserve, Permit, PreBind, Bind, PostBind and Unreserve, if it has them."""

    def __init__(self, evaluator: Evaluator, plugin: Any, cluster: Cluster, tally: CaseCounts) -> None:
        self._evaluator = evaluator
        self._plugin = plugin
        self._cluster = cluster
        self._tally = tally

    def pass_through(self, pod: PodInfo, answers: PodAnswers) -> None:
        """Take the pod through all points on one node that accepts it.

        Args:
            pod: waits.
            answers: the plugin's about this pod, just now. Without an accepted node, or after an error, only PreEnqueue and PostFilter are
                called.

        Raises:
            BreachError: the plugin raises, writes into an object that it is shown, or answers in a wrong shape.
        """
        plugin = self._plugin
        if isinstance(plugin, PreEnqueuePlugin):
            self._call(lambda: plugin.pre_enqueue(pod))
        if isinstance(plugin, PostFilterPlugin):
            self._make_room(pod)
        if answers.accepted and not answers.error:
            self._bind(answers.state, pod, min(answers.accepted))

    def _make_room(self, pod: PodInfo) -> None:
        """PostFilter, with the diagnosis that the scheduler makes; not for a pod that fits somewhere, or whose cycle fails."""
        try:
            evaluation = self._evaluator.evaluate(pod)
        except CycleError:
            return
        if evaluation.count:
            return
        diagnosis = self._evaluator.diagnose(evaluation)
        result = self._call(lambda: self._plugin.post_filter(evaluation.state, pod, self._cluster, diagnosis))
        self._tally.nominated += bool(result.nominated_node)

    def _bind(self, state: CycleState, pod: PodInfo, node: NodeName) -> None:
        plugin, cluster = self._plugin, self._cluster
        # The scheduler assumes a pod before Reserve, so that Reserve plugins find it on the node.
        cluster.assume(pod, node)
        try:
            if isinstance(plugin, ReservePlugin) and not self._call(lambda: plugin.reserve(state, pod, node)).ok:
                return
            if isinstance(plugin, PermitPlugin):
                self._call(lambda: plugin.permit(state, pod, node))
            if isinstance(plugin, PreBindPlugin):
                self._await(lambda: plugin.pre_bind(state, pod, node))
            if isinstance(plugin, BindPlugin):
                self._await(lambda: plugin.bind(state, pod, node, {}))
            if isinstance(plugin, PostBindPlugin):
                self._call(lambda: plugin.post_bind(state, pod, node))
        finally:
            # Unreserve follows a Reserve that failed, too: the plugin may have taken a part before it failed.
            if isinstance(plugin, ReservePlugin):
                with checked(Promise.UNRESERVE):
                    plugin.unreserve(state, pod, node)
            cluster.forget(pod, node)

    def _call(self, call: Callable[[], Any]) -> Any:
        with checked():
            answer = call()
        self._tally.saw(Promise.ANSWERS)
        return answer

    def _await(self, call: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        with checked():
            try:
                _run(call)
            except _NO_API_SERVER:
                return
            except PluginError as problem:
                # The guard wraps each exception of a plugin. Its cause shows whether the plugin only passed on the port's error.
                if isinstance(problem.__cause__, _NO_API_SERVER):
                    return
                raise
        self._tally.saw(Promise.ANSWERS)


def _run(call: Callable[[], Coroutine[Any, Any, Any]]) -> None:
    """Run it in an event loop of its own, in a thread if this one has a loop already; what waits too long is left."""
    problems: list[BaseException] = []

    async def patiently() -> None:
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await call()
        except TimeoutError:
            pass

    def run() -> None:
        try:
            asyncio.run(patiently())
        except Exception as problem:  # noqa: BLE001 - raised again in the caller's thread
            problems.append(problem)

    # A thread runs one event loop at a time, and a test may call `check_plugin` from a coroutine.
    if not in_loop():
        run()
    else:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    if problems:
        raise problems[0]
