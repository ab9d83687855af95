"""Extenders: the fields of a profile, the checked settings, and the answers.

An extender is a web server that kube-scheduler's users add to the scheduler: it filters and scores nodes, agrees to preemption, or binds.
The fields are those of `extenders` in a KubeSchedulerConfiguration. `placewright.profiles` checks them; `placewright.kube` calls extenders.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final

import msgspec

from placewright.api.durations import PATTERN as DURATION_PATTERN
from placewright.api.fieldmeanings import ATOMIC, means
from placewright.api.objects import Container, KubeObject, NodeName
from placewright.api.pods import PodInfo
from placewright.api.profilelimits import (
    MAX_DURATION_LENGTH,
    MAX_ITEMS,
    MAX_PATH_LENGTH,
    MAX_PEM_LENGTH,
    MAX_RESOURCE_NAME_LENGTH,
    MAX_URL_LENGTH,
    MAX_WEIGHT,
)

#: Seconds for a whole call, by default.
DEFAULT_TIMEOUT: Final = 5.0
#: Highest score of an extender; a plugin's highest is ten times as much.
MAX_EXTENDER_SCORE: Final = 10

_PEM: Final[Mapping[str, Any]] = {"format": "byte", "maxLength": MAX_PEM_LENGTH}


def _verb(text: str) -> msgspec.Meta:
    return means(text, maxLength=MAX_URL_LENGTH)


def _path(text: str) -> msgspec.Meta:
    return means(text, maxLength=MAX_PATH_LENGTH)


class ExtenderError(Exception):
    """An extender did not answer, refused, or sent a wrong answer. The message is fit for events."""


class ManagedResource(KubeObject, frozen=True):
    """An extended resource that an extender manages. `ignored_by_scheduler`: NodeResourcesFit does not count it."""

    name: Annotated[
        str,
        means("The extended resource, such as example.com/gpu.", required=True, minLength=1, maxLength=MAX_RESOURCE_NAME_LENGTH),
    ] = ""
    ignored_by_scheduler: Annotated[
        bool,
        means("NodeResourcesFit of this profile does not count it; goes before its ignoredResources."),
    ] = False


class ExtenderTLS(KubeObject, frozen=True):
    """TLS of an extender; `..._data` is PEM in base64 and precedes the file of the same name."""

    insecure: Annotated[bool, means("Do not verify the server's certificate.")] = False
    server_name: Annotated[str, _path("The name expected in the server's certificate; empty: the host of urlPrefix.")] = ""
    cert_file: Annotated[str, _path("PEM file, where the scheduler runs, of our certificate.")] = ""
    key_file: Annotated[str, _path("PEM file, where the scheduler runs, of our certificate's key.")] = ""
    ca_file: Annotated[str, _path("PEM file, where the scheduler runs, of the CAs that the server is verified with.")] = ""
    cert_data: Annotated[str, means("Our certificate, PEM in base64; goes before certFile.", **_PEM)] = ""
    key_data: Annotated[str, means("Its key, PEM in base64; goes before keyFile. Every reader of the profile can read it.", **_PEM)] = ""
    ca_data: Annotated[str, means("The CAs, PEM in base64; goes before caFile.", **_PEM)] = ""

    def __repr__(self) -> str:
        """Without the key."""
        shown = ((name, getattr(self, name)) for name in self.__struct_fields__ if name != "key_data")
        return f"ExtenderTLS({', '.join(f'{name}={value!r}' for name, value in shown if value)})"


class ExtenderSpec(KubeObject, frozen=True):
    """One entry of `spec.extenders` as written, not checked yet; `http_timeout` is a duration such as `500ms`."""

    url_prefix: Annotated[
        str,
        means("Where it is; a slash and the verb are put after it.", required=True, pattern="^https?://", maxLength=MAX_URL_LENGTH),
    ] = ""
    filter_verb: Annotated[str, _verb("Takes nodes out. Empty: it does not filter.")] = ""
    preempt_verb: Annotated[str, _verb("Agrees to preemption, or chooses other victims. Empty: it is not asked.")] = ""
    prioritize_verb: Annotated[str, _verb("Scores nodes from 0 to 10. Empty: it does not score.")] = ""
    weight: Annotated[
        int,
        means(
            "Factor of its scores, which count ten times as much before; needed with prioritizeVerb.",
            minimum=0,
            maximum=MAX_WEIGHT,
            format="int64",
        ),
    ] = 0
    bind_verb: Annotated[str, _verb("Binds pods in the scheduler's stead; only one extender may. Empty: it does not bind.")] = ""
    enable_https: Annotated[
        bool,
        means("Without a CA in tlsConfig, the certificate of an https URL is then not verified, as in kube-scheduler."),
    ] = msgspec.field(default=False, name="enableHTTPS")
    tls_config: Annotated[ExtenderTLS | None, means("How it is spoken to over HTTPS.")] = None
    http_timeout: Annotated[
        str,
        means("How long a whole call may take, such as 500ms; absent: 5s.", pattern=DURATION_PATTERN, maxLength=MAX_DURATION_LENGTH),
    ] = ""
    node_cache_capable: Annotated[
        bool,
        means("It knows the nodes: names of nodes and uids of victims are sent, not whole objects."),
    ] = False
    managed_resources: Annotated[
        list[ManagedResource] | None,
        means(
            "It is asked only about pods that ask for one of these extended resources; empty: about all pods.",
            maxItems=MAX_ITEMS,
            **ATOMIC,
        ),
    ] = None
    ignorable: Annotated[bool, means("When it fails, pods are placed without it.")] = False


class ExtenderSettings(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One extender of a profile, checked and defaulted.

    Attributes:
        url_prefix: a call goes to this, a slash, and the verb.
        filter_verb, preempt_verb, prioritize_verb, bind_verb: last part of a call's URL; empty for a call that the extender does not serve.
        weight: factor of its scores, 1 or more if there is a `prioritize_verb`.
        enable_https: True leaves the server's certificate unverified if `tls_config` has no CA, as in kube-scheduler.
        http_timeout: seconds for a whole call.
        node_cache_capable: the extender knows the nodes: names are sent, not whole objects.
        managed_resources: it is asked only about pods that request one of these; empty: about all pods.
        ignorable: a failure of it does not keep a pod from being placed.
        field: its path in the profile, such as `spec.extenders[0]`, for messages.
    """

    url_prefix: str
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: int = 0
    bind_verb: str = ""
    enable_https: bool = msgspec.field(default=False, name="enableHTTPS")
    tls_config: ExtenderTLS = ExtenderTLS()
    http_timeout: float = DEFAULT_TIMEOUT
    node_cache_capable: bool = False
    managed_resources: tuple[ManagedResource, ...] = ()
    ignorable: bool = False
    field: str = "spec.extenders[0]"

    @property
    def name(self) -> str:
        """Name in messages, diagnoses and scores: its URL, as in kube-scheduler."""
        return self.url_prefix

    def interested_in(self, pod: PodInfo) -> bool:
        """Return whether the extender is asked about a pod.

        Returns:
            True when it manages all pods, or a resource that the pod requests or limits.
        """
        if not self.managed_resources:
            return True
        managed = {resource.name for resource in self.managed_resources}
        spec = pod.pod.spec
        return not managed.isdisjoint(_named_resources((*(spec.containers or ()), *(spec.init_containers or ()))))


def _named_resources(containers: Iterable[Container]) -> set[str]:
    """Return every resource that these containers request or limit, in any amount."""
    both = ((container.resources.requests, container.resources.limits) for container in containers)
    return {name for pair in both for resources in pair for name in resources or ()}


class Filtered(msgspec.Struct, frozen=True):
    """An extender's answer about nodes: nodes that it keeps, and reasons for others. `unresolvable` precedes `failed`.

    Nodes in none of the three are dropped without a reason.
    """

    kept: tuple[NodeName, ...]
    failed: dict[NodeName, str] = {}
    unresolvable: dict[NodeName, str] = {}


class NodeVictims(msgspec.Struct, frozen=True):
    """Victims of a preemption on one node, and the number of disruption budgets that it violates."""

    pods: tuple[PodInfo, ...]
    violations: int = 0
