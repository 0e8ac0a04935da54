"""Spans of OpenTelemetry: one for each call of a group, and below it one for each rank that runs the call.

They are off by default: without OTEL_TRACES_EXPORTER in its environment, a process imports nothing of OpenTelemetry.
"""

from __future__ import annotations

import functools
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

EXPORTERS = "OTEL_TRACES_EXPORTER"
SPAN_VARIABLES = ("TRACEPARENT", "TRACESTATE")
"""The variables that name the span of which a program is a part, by the convention of OpenTelemetry."""
NOTE = "_workergroups_trace"
"""The keyword with which a rank's method gets the `Carrier` of its call."""
_OFF = ("", "none")
_GROUP, _RANK, _METHOD = "workergroups.group", "workergroups.rank", "workergroups.method"
_ROLE = "workergroups.role"
"""Where a `Carrier` has the role of the method, which a rank with several does not know."""
_OTLP_EXPORTERS = {"grpc": "otlp_proto_grpc", "http/protobuf": "otlp_proto_http"}

Carrier = Mapping[str, str]
"""What names a span in another process."""

_CALL: ContextVar[Carrier | None] = ContextVar("call", default=None)
_LOGGER = logging.getLogger(__name__)
_logged: set[str] = set()
_making = threading.RLock()


def present_call() -> Carrier | None:
    """Return what names the span of the call that this thread is making; ``None`` if that is not traced."""
    return _CALL.get()


def of_call(group: str, role: str, method: str, *, reaches_ranks: bool = True) -> AbstractContextManager[None]:
    """Trace a driver's call. It is a part of the program's present span, or else of that which the environment names.

    Of a call that does not wait for its results, this is only what the driver does for it.

    Args:
        group: The name of the group.
        role: The role of the method; may be empty.
        method: The name of the method.
        reaches_ranks: Whether the method can get a `Carrier`.
    """
    tracer = _tracer()
    if tracer is None:
        return nullcontext()
    return _guarded(functools.partial(_begin_call, tracer, group, role, method, reaches_ranks))


def of_rank(method: str, carrier: Carrier | None) -> AbstractContextManager[None]:
    """Trace what this rank does for a call, if the call is traced and this process knows where its spans go."""
    if carrier is None or (tracer := _tracer()) is None:
        return nullcontext()
    return _guarded(functools.partial(_begin_rank, tracer, method, carrier))


def _begin_call(tracer: Any, group: str, role: str, method: str, reaches_ranks: bool, stack: ExitStack) -> None:
    from opentelemetry import propagate, trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    is_in_span = trace.get_current_span().get_span_context().is_valid
    outer = {name.lower(): os.environ[name] for name in SPAN_VARIABLES if name in os.environ}
    parent = None if is_in_span else TraceContextTextMapPropagator().extract(outer)
    attributes, carrier = {_GROUP: group, _METHOD: method}, dict[str, str]()
    name = ".".join(filter(None, (group, role, method)))
    stack.enter_context(tracer.start_as_current_span(name, parent, trace.SpanKind.CLIENT, attributes))
    propagate.inject(carrier)
    token = _CALL.set({**carrier, _ROLE: role} if carrier and reaches_ranks else None)
    stack.callback(_CALL.reset, token)


def _begin_rank(tracer: Any, method: str, carrier: Carrier, stack: ExitStack) -> None:
    from opentelemetry import propagate, trace

    rank, group = int(os.environ.get("RANK", "0")), os.environ.get("WG_PREFIX", "")
    attributes = {_GROUP: group, _METHOD: method, _RANK: rank}
    name = ".".join(filter(None, (carrier.get(_ROLE), method)))
    stack.enter_context(
        tracer.start_as_current_span(name, propagate.extract(carrier), trace.SpanKind.SERVER, attributes)
    )


@contextmanager
def _guarded(begin: Callable[[ExitStack], None]) -> Iterator[None]:
    """Run the user's code in what `begin` begins. Only the user's exceptions leave this."""
    stack, consequence = ExitStack(), "a span is missing or incomplete"
    with _errors_logged(consequence):
        begin(stack)
    try:
        yield
    except BaseException:
        with _errors_logged(consequence):
            stack.__exit__(*sys.exc_info())
        raise
    with _errors_logged(consequence):
        stack.close()


@contextmanager
def _errors_logged(consequence: str) -> Iterator[None]:
    """Log the first error of each consequence, and raise none: a wrong variable or exporter must not end a training."""
    try:
        yield
    except Exception as error:
        if consequence not in _logged:
            _logged.add(consequence)
            _LOGGER.warning("%s: %s: %s", consequence, type(error).__name__, error)


def _tracer() -> Any:
    """Return what begins spans; ``None`` if none are wanted, or if something is wrong."""
    exporters = os.environ.get(EXPORTERS, "")
    if exporters in _OFF:
        return None
    with _making:  # the cache alone lets two threads make a provider each
        return _tracer_for(exporters)


@functools.cache
def _tracer_for(exporters: str) -> Any:
    with _errors_logged(f"{EXPORTERS} is {exporters}, but no call is traced"):
        from opentelemetry import propagate, trace  # noqa: F401 (it reads OTEL_PROPAGATORS, which may be wrong)
        from opentelemetry.sdk.trace import TracerProvider

        if not isinstance(trace.get_tracer_provider(), TracerProvider):
            trace.set_tracer_provider(_provider(exporters))
        return trace.get_tracer("workergroups")
    return None


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

    if name == "otlp":  # the exporter of that name ignores the protocol
        name = _otlp_exporter()
    for found in entry_points(group="opentelemetry_traces_exporter", name=name):
        return found.load()
    raise ImportError(
        f"no package has the exporter {name!r}: install opentelemetry-sdk and opentelemetry-exporter-otlp in the image"
    )


def _otlp_exporter() -> str:
    variables = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"
    protocol = next(filter(None, map(os.environ.get, variables)), "grpc").strip()
    if protocol not in _OTLP_EXPORTERS:
        raise ValueError(f"{' or '.join(variables)} must be {' or '.join(_OTLP_EXPORTERS)}, not {protocol!r}")
    return _OTLP_EXPORTERS[protocol]
