"""OpenTelemetry traces of attempts: whether they are wanted, and what is open beside an engine when they are.

Nothing here, and nothing that the scheduler needs, imports OpenTelemetry: it is an extra (`pip install 'placewright[otel]'`).
docs/tracing.md.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final

from placewright.api.bad_input import InputError, bad_field
from placewright.engine.beside import Beside, Listeners, Membership, StandBeside, nothing_beside

_log = logging.getLogger(__name__)

RATE_FLAG: Final = "--tracing-sampling-rate-per-million"
MILLION: Final = 1_000_000
_INSTALL: Final = "pip install 'placewright[otel]'"
_NEEDED: Final = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
_SAMPLER: Final = "OTEL_TRACES_SAMPLER"
_EXPORTER: Final = "OTEL_TRACES_EXPORTER"
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_SPOKEN: Final = "http/protobuf"


@dataclass(frozen=True, slots=True)
class TracingOptions:
    """How many attempts are traced.

    Attributes:
        rate_per_million: of attempts; 0: none; None: as OTEL_TRACES_SAMPLER says, and none without it.
    """

    rate_per_million: int | None = None

    def wanted(self, environ: Mapping[str, str]) -> bool:
        """Whether anything is to be traced."""
        if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true" or environ.get(_EXPORTER) == "none":
            return False
        return bool(environ.get(_SAMPLER)) if self.rate_per_million is None else self.rate_per_million > 0


def tracing(options: TracingOptions, environ: Mapping[str, str] = os.environ) -> StandBeside:
    """What stands beside an engine so that its attempts are traced.

    Raises `InputError` when the flag asks for what is not installed, or the environment for what is not spoken. Where only the
    environment asks, which may be there for others, what is not installed is no error.
    """
    if not options.wanted(environ):
        return nothing_beside
    if not installed():
        if options.rate_per_million is None:
            _log.warning("%s is set, but nothing is traced: OpenTelemetry is not installed; %s", _SAMPLER, _INSTALL)
            return nothing_beside
        raise InputError(f"{RATE_FLAG}: found {options.rate_per_million}, but OpenTelemetry is not installed; allowed after {_INSTALL}")
    _check(environ)

    def stand(member: Membership) -> Beside:
        # Here and not above: it imports OpenTelemetry.
        from placewright.observability.tracingexport import AttemptTraces  # noqa: PLC0415

        traces = AttemptTraces.exporting(options.rate_per_million, member.replica.identity)
        return Beside(Listeners(attempts=(traces,)), lambda _engine: traces)

    return stand


def installed() -> bool:
    """Whether the extra is there."""
    try:
        return all(find_spec(module) is not None for module in _NEEDED)
    except ModuleNotFoundError:
        return False


def _check(environ: Mapping[str, str]) -> None:
    if (exporter := environ.get(_EXPORTER) or "otlp") != "otlp":
        raise bad_field(_EXPORTER, exporter, "otlp, or none")
    for variable in _PROTOCOLS:
        protocol = environ.get(variable)
        if protocol:
            if protocol != _SPOKEN:
                raise bad_field(variable, protocol, f"{_SPOKEN}, the collector's port 4318 as a rule")
            return
