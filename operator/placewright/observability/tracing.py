"""OpenTelemetry traces of attempts: judges whether they are wanted, and makes the companion of an engine that exports them.

This module does not import OpenTelemetry, nor does any that the scheduler needs: it is an extra (`pip install 'placewright[otel]'`).
docs/tracing.md describes the spans.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Final

from placewright.api.bad_input import InputError, bad_field
from placewright.engine.companions import Companions, Listeners, MakeCompanions, ReplicaInfo, no_companions

_log = logging.getLogger(__name__)

RATE_FLAG: Final = "--tracing-sampling-rate-per-million"
MILLION: Final = 1_000_000
_INSTALL: Final = "pip install 'placewright[otel]'"
_NEEDED: Final = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
_SAMPLER: Final = "OTEL_TRACES_SAMPLER"
_EXPORTER: Final = "OTEL_TRACES_EXPORTER"
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_SPOKEN: Final = "http/protobuf"


def tracing(rate_per_million: int | None, environ: Mapping[str, str] = os.environ) -> MakeCompanions:
    """Make the companion that traces an engine's attempts.

    If only the environment asks for traces and OpenTelemetry is not installed, log a warning: other programs may be meant.

    Args:
        rate_per_million: attempts in a million that are traced; 0 for none; None for the rate of OTEL_TRACES_SAMPLER, and none without it.
        environ: OpenTelemetry's own variables.

    Returns:
        A maker of the companion; a maker of none if no attempt is traced.

    Raises:
        InputError: the flag asks for traces and OpenTelemetry is not installed, or the environment names a protocol that is not supported.
    """
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true" or environ.get(_EXPORTER) == "none":
        return no_companions
    if not (environ.get(_SAMPLER) if rate_per_million is None else rate_per_million):
        return no_companions
    if not installed():
        if rate_per_million is None:
            _log.warning("%s is set, but nothing is traced: OpenTelemetry is not installed; %s", _SAMPLER, _INSTALL)
            return no_companions
        raise InputError(f"{RATE_FLAG}: found {rate_per_million}, but OpenTelemetry is not installed; allowed after {_INSTALL}")
    _check(environ)

    def make(info: ReplicaInfo) -> Companions:
        # Here and not above: it imports OpenTelemetry.
        from placewright.observability.tracingexport import AttemptTraces  # noqa: PLC0415

        traces = AttemptTraces.exporting(rate_per_million, info.replica.identity)
        return Companions(Listeners(attempts=(traces,)), lambda _engine: traces)

    return make


def installed() -> bool:
    """Whether the extra `otel` is installed."""
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
