"""Spans of OpenTelemetry: one for each call of a group, and below it one for each rank that runs the call.

They are off by default: without OTEL_TRACES_EXPORTER in its environment, a process imports nothing of OpenTelemetry.
"""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

EXPORTERS = "OTEL_TRACES_EXPORTER"
SPAN_VARIABLES = ("TRACEPARENT", "TRACESTATE")
"""The variables that name the span of which a program is a part, by the convention of OpenTelemetry."""
NOTE = "_workergroups_trace"
"""The keyword with which a rank's method gets the `Carrier` of its call."""
_OFF = ("", "none")
_GROUP, _RANK, _METHOD = "workergroups.group", "workergroups.rank", "workergroups.method"

Carrier = Mapping[str, str]
"""What names a span in another process."""

_CALL: ContextVar[Carrier | None] = ContextVar("call", default=None)


def present_call() -> Carrier | None:
    """Return what names the span of the call that this thread is making; ``None`` if that is not traced."""
    return _CALL.get()


@contextmanager
def of_call(group: str, method: str) -> Iterator[None]:
    """Trace a driver's call. It is a part of the program's present span, or else of that which the environment names.

    Of a call that does not wait for its results, this is only what the driver does for it.
    """
    tracer = _tracer(os.environ.get(EXPORTERS, ""))
    if tracer is None:
        yield
        return
    from opentelemetry import propagate, trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    is_in_span = trace.get_current_span().get_span_context().is_valid
    outer = {name.lower(): os.environ[name] for name in SPAN_VARIABLES if name in os.environ}
    parent = None if is_in_span else TraceContextTextMapPropagator().extract(outer)
    attributes, carrier = {_GROUP: group, _METHOD: method}, dict[str, str]()
    with tracer.start_as_current_span(f"{group}.{method}", parent, trace.SpanKind.CLIENT, attributes):
        propagate.inject(carrier)
        token = _CALL.set(carrier or None)
        try:
            yield
        finally:
            _CALL.reset(token)


@contextmanager
def of_rank(method: str, carrier: Carrier | None) -> Iterator[None]:
    """Trace what this rank does for a call, if the call is traced and this process knows where its spans go."""
    if carrier is None or (tracer := _tracer(os.environ.get(EXPORTERS, ""))) is None:
        yield
        return
    from opentelemetry import propagate, trace

    rank, group = int(os.environ.get("RANK", "0")), os.environ.get("WG_PREFIX", "")
    attributes = {_GROUP: group, _METHOD: method, _RANK: rank}
    with tracer.start_as_current_span(method, propagate.extract(carrier), trace.SpanKind.SERVER, attributes):
        yield


@functools.cache
def _tracer(exporters: str) -> Any:
    """Return what begins spans; ``None`` if none are wanted, or if something is wrong, of which it warns once."""
    if exporters in _OFF:
        return None
    try:
        from opentelemetry import propagate, trace  # noqa: F401 (it reads OTEL_PROPAGATORS, which may be wrong)
        from opentelemetry.sdk.trace import TracerProvider

        if not isinstance(trace.get_tracer_provider(), TracerProvider):
            trace.set_tracer_provider(_provider(exporters))
    except Exception as error:  # a wrong variable must not end a training
        warnings.warn(
            f"{EXPORTERS} is {exporters}, but no call is traced: {type(error).__name__}: {error}", stacklevel=1
        )
        return None
    return trace.get_tracer("workergroups")


def _provider(exporters: str) -> Any:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    made = [_exporter(name.strip())() for name in exporters.split(",")]
    provider = TracerProvider()
    for exporter in made:
        provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


def _exporter(name: str) -> Any:
    from importlib.metadata import entry_points

    for found in entry_points(group="opentelemetry_traces_exporter", name=name):
        return found.load()
    raise ImportError(
        f"no package has the exporter {name!r}: install opentelemetry-sdk and opentelemetry-exporter-otlp in the image"
    )
