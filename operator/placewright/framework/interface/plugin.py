"""`Plugin`, the base of all plugins: its name, its arguments, the signature of a pod, and the events that help a rejected pod."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, get_args, get_origin

from placewright.api.pods import PodInfo
from placewright.framework.events import ClusterEventWithHint
from placewright.framework.interface.handle import Handle
from placewright.framework.patches import ObjectPatch
from placewright.framework.sources import AnySource

if TYPE_CHECKING:
    # `typing` has defaults of type variables from Python 3.13 on. Type checkers know this module whether it is installed or not.
    from typing_extensions import TypeVar

    #: The class of a plugin's arguments. A plugin that does not name one has arguments of any type, as before there was a parameter.
    ArgsT = TypeVar("ArgsT", default=Any)
else:
    from typing import TypeVar

    ArgsT = TypeVar("ArgsT")


@dataclass(frozen=True, slots=True)
class NoArgs:
    """Arguments of a plugin that takes none."""


@dataclass(frozen=True, slots=True)
class PluginMetric:
    """A metric of a plugin's own, as it stands when Prometheus asks.

    Attributes:
        name: lower-case letters and underscores, exported as `placewright_plugin_NAME`. A counter's name ends with `_total`; other metrics
            are gauges.
        help: one line for a person.
        values: numbers by the values of `labels`, at most 1,000. The label `profile` is added to each.
        labels: their names, in the order of the keys of `values`.
    """

    name: str
    help: str
    values: Mapping[tuple[str, ...], float]
    labels: tuple[str, ...] = ()


class Plugin(Generic[ArgsT]):
    """Base of all plugins. A plugin extends one or more of the extension points, which extend this class.

    The first base names the class of the arguments, so that `self.args` has that type: `class Fit(FilterPlugin[FitArgs], ScorePlugin)`.
    The other bases need not repeat it. `Args` follows from it. If the class of the arguments is inside the plugin's own body, the plugin
    sets `Args` instead. A plugin without arguments needs neither.

    The scheduler builds a plugin once for each generation of a profile that runs it. It asks that object at all its points, for all pods
    of the profile. A shadow builds objects of its own. So a plugin keeps its memory in `self`, never in a module or a class.

    Every call comes on the thread of the event loop. Only `pre_bind` and `bind` may await; every other call holds up all profiles until it
    returns. A decision should take less than a millisecond: the scheduler decides for 5 ms before other work gets its turn. A call that
    has not returned after `--hang-timeout` (60 seconds) ends the process. The next process takes no pods of that profile until its spec
    changes.

    An exception out of PreFilter to Bind ends the attempt as an error: the pod backs off, is tried again, and its event names plugin and
    point. The docstring of any other call says what follows an exception there.

    Attributes:
        name: name of the plugin in profiles, messages and metrics; unique among all registered plugins.
        Args: a dataclass or msgspec struct; its fields are the arguments that a profile may set, checked when the profile is read.
        default_weight: the weight of the score if a profile sets none. Upstream's default profile decides it for our plugins.
        sources: objects that the scheduler reads from the API server for this plugin, into `cluster.objects.of(kind)` or for a follower.
        patches: objects that the plugin writes by `Handle.patch`.
        args: the arguments of this profile, an instance of `Args`.
        handle: the scheduler as plugins may use it.

    Example:
        @dataclass(frozen=True)
        class SeatArgs:
            seats: int = 4


        class Seats(FilterPlugin[SeatArgs]):
            name = "Seats"
    """

    name: ClassVar[str]
    Args: ClassVar[type[Any]] = NoArgs
    default_weight: ClassVar[int] = 1
    sources: ClassVar[tuple[AnySource, ...]] = ()
    patches: ClassVar[tuple[ObjectPatch, ...]] = ()

    @classmethod
    def idle_because(cls, args: Any) -> str:
        """Explain why the plugin does nothing with these arguments, for the condition Advice. Called when a profile's advice is worked out.

        Args:
            args: an instance of `Args`.

        Returns:
            A clause such as `it has no limits`; empty if the plugin does something.
        """
        return ""

    @classmethod
    def counted_resources(cls, args: Any) -> tuple[str, ...]:
        """List the resources of nodes that the arguments name. If no node offers any of them, the profile's author is advised.

        Args:
            args: an instance of `Args`.

        Returns:
            Names of resources; empty if the arguments name none.
        """
        return ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        named = _args_named_by(cls)
        if named is None:
            return
        # In the class itself: an inherited `Args` is a base's, and the parameter is this one's.
        if "Args" not in cls.__dict__:
            cls.Args = named
        elif not issubclass(cls.Args, named):
            # `self.args` would have another type than checkers take it for.
            raise TypeError(f"{cls.__qualname__}: Args is {cls.Args.__qualname__}, but its base has arguments of {named.__qualname__}")

    def __init__(self, args: ArgsT, handle: Handle) -> None:
        """Keep the arguments and the handle. An override calls this one, and asks nothing of the handle but `cluster` and `runs`.

        Args:
            args: the arguments, checked; fields that the profile does not set have the defaults of `Args`.
            handle: the scheduler as plugins may use it; the same for all plugins of the profile.

        Raises:
            InputError: by an override, for arguments that only the plugin can judge; the profile is refused with this message.
        """
        self.args = args
        self.handle = handle

    def sign(self, pod: PodInfo) -> Hashable | None:
        """Return everything of the pod that this plugin's Filter and Score depend on.

        Pods with equal signatures share this plugin's columns, and the values that its PreFilter and PreScore wrote. Signatures of other
        plugins do not matter for that. If the signature names too little, a pod gets another pod's answer. If it names too much, such as
        the pod's name, nothing is shared.

        Called at least once per attempt, before PreFilter, by every caller of Filter; only of plugins that have Filter or Score.

        Args:
            pod: only to be read.

        Returns:
            A hashable value; () if the plugin reads nothing of the pod. None if no two pods may share: then no plugin's column is kept for
            the pod.

        Example:
            return pod.labels.get("example.com/team", "")
        """
        return ()

    def start(self) -> None:
        """Begin work beside decisions, such as a timer. Called when the profile takes effect with this generation.

        It is called again after `close` if the generation takes effect again: an older profile had the schedulerName and is gone.
        Plugins of shadows, and of commands that look at a cluster, are built and never started. An exception is logged and counted, and the
        profile goes on.
        """

    def close(self) -> None:
        """End what `start` began. Called when another generation takes effect, the profile goes or the process ends.

        Attempts that began under this generation may still call the plugin. What a later generation needs is kept in
        `Cluster.extension`.
        """

    def metrics(self) -> Iterable[PluginMetric]:
        """Return the plugin's own metrics. Called on the event loop, whenever Prometheus asks, while the profile is in effect.

        Returns:
            The metrics. A counter must outlive the generation: keep it in `Cluster.extension`.

        Example:
            return [PluginMetric("seats_taken_total", "Seats that pods took.", {("r1",): 3.0}, labels=("rack",))]
        """
        return ()

    def events(self) -> Sequence[ClusterEventWithHint] | None:
        """Return the events that could turn this plugin's rejections around, each with its hint.

        A pod that this plugin rejected waits until one of them happens and its hint answers QUEUE. A hint that misses an event leaves the
        pod waiting for five minutes (`queue.MAX_UNSCHEDULABLE_SECONDS`). A hint that is too eager has pods tried in vain.

        Called once, when the profile is built.

        Returns:
            None for "any event"; () if no event helps, because the pod itself must be replaced.

        Example:
            return [event_with_hint(EventResource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, self._node_suits_now)]
        """
        return None


def _args_named_by(kind: type[Plugin]) -> type[Any] | None:
    """Return the class that the first parametrised base names; None for `Any`, a type variable or an undefined name."""
    for base in kind.__dict__.get("__orig_bases__", ()):
        origin, named = get_origin(base), get_args(base)
        if isinstance(origin, type) and issubclass(origin, Plugin) and len(named) == 1:
            return named[0] if isinstance(named[0], type) and named[0] is not Any else None
    return None
