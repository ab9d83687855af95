"""Extenders: what a profile says of one, what is settled of it, and what it answers.

An extender is a web server that kube-scheduler's users add to the scheduler: it filters and scores nodes, agrees to preemption, or binds.
The fields are those of `extenders` in a KubeSchedulerConfiguration; `placewright.profiles` checks them, `placewright.kube` calls.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from placewright.api.objects import Container, KubeObject, NodeName
from placewright.api.pods import PodInfo

#: Seconds for a whole call where a profile does not say.
DEFAULT_TIMEOUT: Final = 5.0
#: The score that an extender gives its best node; a plugin's is ten times as much.
MAX_EXTENDER_SCORE: Final = 10


class ExtenderError(Exception):
    """An extender did not answer, refused, or answered what makes no sense; the message is fit for events."""


class ManagedResource(KubeObject, frozen=True):
    """An extended resource that an extender looks after; `ignored_by_scheduler`: NodeResourcesFit does not count it."""

    name: str = ""
    ignored_by_scheduler: bool = False


class ExtenderTLS(KubeObject, frozen=True):
    """How an extender is spoken to over HTTPS; `..._data` is PEM in base64 and goes before the file of the same name."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: str = ""
    key_data: str = ""
    ca_data: str = ""

    def __repr__(self) -> str:
        """Without the key."""
        shown = ((name, getattr(self, name)) for name in self.__struct_fields__ if name != "key_data")
        return f"ExtenderTLS({', '.join(f'{name}={value!r}' for name, value in shown if value)})"


class ExtenderSpec(KubeObject, frozen=True):
    """One of `spec.extenders` as people write it, not yet checked; `http_timeout` is a duration such as `500ms`."""

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: int = 0
    bind_verb: str = ""
    enable_https: bool = msgspec.field(default=False, name="enableHTTPS")
    tls_config: ExtenderTLS | None = None
    http_timeout: str = ""
    node_cache_capable: bool = False
    managed_resources: list[ManagedResource] | None = None
    ignorable: bool = False


class ExtenderSettings(msgspec.Struct, frozen=True, kw_only=True):
    """One extender of a profile, checked and defaulted.

    Attributes:
        url_prefix: a call goes to this, a slash, and the verb.
        filter_verb, preempt_verb, prioritize_verb, bind_verb: the last part of a call's URL; empty for what the extender does not do.
        weight: factor of its scores, 1 or more where there is a `prioritize_verb`.
        enable_https: without a CA in `tls_config` the server's certificate is then not verified, as in kube-scheduler.
        http_timeout: seconds for a whole call.
        node_cache_capable: it knows the nodes; names are sent, not whole objects.
        managed_resources: it is asked only about pods that ask for one of these; empty: about all.
        ignorable: a failure of it does not keep a pod from being placed.
        field: where it stands in the profile, such as `spec.extenders[0]`, for messages.
    """

    url_prefix: str
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: int = 0
    bind_verb: str = ""
    enable_https: bool = False
    tls_config: ExtenderTLS = ExtenderTLS()
    http_timeout: float = DEFAULT_TIMEOUT
    node_cache_capable: bool = False
    managed_resources: tuple[ManagedResource, ...] = ()
    ignorable: bool = False
    field: str = "spec.extenders[0]"

    @property
    def name(self) -> str:
        """The extender in messages, in lists of who rejected a pod, and among scores: its URL, as in kube-scheduler."""
        return self.url_prefix

    def interested_in(self, pod: PodInfo) -> bool:
        """True when the extender wants to be asked about this pod."""
        if not self.managed_resources:
            return True
        managed = {resource.name for resource in self.managed_resources}
        spec = pod.pod.spec
        return not managed.isdisjoint(_named_resources((*(spec.containers or ()), *(spec.init_containers or ()))))


def _named_resources(containers: Iterable[Container]) -> set[str]:
    """Every resource that these containers request or limit, whatever the amount."""
    both = ((container.resources.requests, container.resources.limits) for container in containers)
    return {name for pair in both for resources in pair for name in resources or ()}


class Filtered(msgspec.Struct, frozen=True):
    """What an extender said of nodes: those that it keeps, and why others do not do. `unresolvable` goes before `failed`.

    Nodes in none of the three are dropped without a reason.
    """

    kept: tuple[NodeName, ...]
    failed: dict[NodeName, str] = {}
    unresolvable: dict[NodeName, str] = {}


class NodeVictims(msgspec.Struct, frozen=True):
    """Whom a preemption would end on one node, and how many disruption budgets that violates."""

    pods: tuple[PodInfo, ...]
    violations: int = 0
