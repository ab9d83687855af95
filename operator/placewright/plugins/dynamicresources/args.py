"""Arguments of DynamicResources, as in KubeSchedulerConfiguration v1."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from placewright.api.durations import PATTERN, seconds

_LEAST_BINDING_SECONDS: Final = 1.0
_DURATION: Final = msgspec.Meta(
    extra_json_schema={"pattern": PATTERN, "description": "a duration such as 10s"}, extra={"allowed": "a duration such as 10s"}
)


class DynamicResourcesArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """How long a search for devices on one node may take (0s: no limit), and how long a pod may wait until its devices are ready."""

    filter_timeout: Annotated[str, _DURATION] = "10s"
    binding_timeout: Annotated[str, _DURATION] = "600s"

    @property
    def filter_seconds(self) -> float:
        """`filter_timeout` in seconds."""
        return seconds(self.filter_timeout) or 0.0

    @property
    def binding_seconds(self) -> float:
        """`binding_timeout` in seconds."""
        return seconds(self.binding_timeout) or 0.0

    def validate(self) -> list[tuple[str, str, str]]:
        """Devices get a second at least."""
        waits = seconds(self.binding_timeout)
        return [] if waits is None or waits >= _LEAST_BINDING_SECONDS else [("bindingTimeout", self.binding_timeout, "1s or more")]
