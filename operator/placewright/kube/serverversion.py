"""The API server's version, and the fields of pods that it does not know.

The kinds that a server serves are discovered (`discovery`). Fields of a pod cannot be: an API server drops unknown fields silently.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec

from placewright.api.decode import DecodeError
from placewright.kube.client import ApiClient
from placewright.kube.errors import ApiError

#: Fields that placement reads, with the minor version of Kubernetes 1 that added them. An older server drops them from every pod.
LATER_FIELDS: Final = (
    (21, "namespaceSelector of pod affinity"),
    (24, "minDomains"),
    (25, "nodeAffinityPolicy, nodeTaintsPolicy, matchLabelKeys"),
    (26, "schedulingGates"),
    (26, "resourceClaims"),
    (28, "restartPolicy of init containers"),
    (32, "resources of whole pods"),
)
#: Since this minor version a Binding is refused whose uid is not the pod's; 1.25 and 1.26 lost that for a while.
BINDINGS_COMPARE_UIDS: Final = 23

#: Seconds for which API servers answer with a newer version before it counts.
STEADY_SECONDS: Final = 600.0

_LEADING_NUMBER: Final = re.compile(r"\d+")


class _Version(msgspec.Struct):
    major: str = ""
    minor: str = ""


@dataclass(frozen=True, slots=True)
class ServerVersion:
    """The version Kubernetes 1.`minor`."""

    minor: int

    def __str__(self) -> str:
        return f"Kubernetes 1.{self.minor}"

    @property
    def unknown_fields(self) -> tuple[str, ...]:
        """Fields that this version drops from pods, each with the version that added it."""
        return tuple(f"{what} (1.{since})" for since, what in LATER_FIELDS if self.minor < since)

    @property
    def ignores_uids(self) -> bool:
        """True when a Binding meant for a pod that is gone binds a new pod of its name."""
        return self.minor < BINDINGS_COMPARE_UIDS


class SteadyVersion:
    """The lowest version that API servers answered with in the last ten minutes.

    While API servers are upgraded one by one, old and new ones answer in turns. So the version rises when all of them have been new for
    ten minutes, and falls at once.

    Args:
        clock: seconds, monotonic.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._answers: deque[tuple[float, int]] = deque()

    def after(self, answer: ServerVersion) -> int:
        """Note an answer.

        Returns:
            The minor version of Kubernetes 1.
        """
        now = self._clock()
        self._answers.append((now, answer.minor))
        # An answer stands until the next one.
        while len(self._answers) > 1 and self._answers[1][0] <= now - STEADY_SECONDS:
            self._answers.popleft()
        return min(minor for _, minor in self._answers)


async def server_version(client: ApiClient) -> ServerVersion | None:
    """Ask the server for its version.

    Returns:
        The version; None when the server refuses to tell, or is not Kubernetes 1.

    Raises:
        RequestError: the server did not answer, or is overloaded.
    """
    try:
        told = await client.get_as("/version", _Version)
    except ApiError as error:
        if error.temporary:
            raise
        return None
    except DecodeError:
        return None
    # Providers write things like "27+".
    minor = _LEADING_NUMBER.match(told.minor)
    return ServerVersion(int(minor.group())) if told.major == "1" and minor else None
