"""Where the spans of a process go."""

import subprocess
import sys
import threading
import time

import pytest
from opentelemetry import propagate
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Sampler
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from workergroups import tracing

PROGRAM = """
import sys, warnings
warnings.simplefilter("error" if "{exporters}" in ("", "none") else "always")
from workergroups import tracing
for method in ("step", "save"):
    with tracing.of_call("trainer", "{role}", method):
        carrier = tracing.present_call()
        with tracing.of_rank(method, carrier):
            print("carrier", carrier and "traceparent" in carrier)
    assert tracing.present_call() is None
print("imported", "opentelemetry" in sys.modules)
"""


EXPORTERS_OF_OTLP = """
from opentelemetry.sdk.trace.export import ConsoleSpanExporter
class Grpc(ConsoleSpanExporter): ...
class Http(ConsoleSpanExporter): ...
for each in (Grpc, Http):
    each.shutdown = lambda self: print("sent by", type(self).__name__)
"""
ENTRY_POINTS = """
[opentelemetry_traces_exporter]
otlp_proto_grpc = exporters_of_otlp:Grpc
otlp_proto_http = exporters_of_otlp:Http
"""


def run(exporters, role="", path=(), **environment):
    """What a program prints, and of what it warns."""
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(exporters=exporters, role=role)],
        env={"PYTHONPATH": ":".join([*map(str, path), *sys.path]), "OTEL_TRACES_EXPORTER": exporters, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return found.stdout, found.stderr


@pytest.mark.parametrize("exporters", ["", "none"])
def test_without_an_exporter_nothing_is_traced_or_imported(exporters):
    assert run(exporters)[0].splitlines() == ["carrier None"] * 2 + ["imported False"]


def test_an_exporter_of_the_environment_gets_the_spans():
    shown, warned = run("console", OTEL_SERVICE_NAME="policy")
    assert "carrier True" in shown
    assert '"name": "trainer.step"' in shown
    assert '"name": "step"' in shown
    assert '"service.name": "policy"' in shown
    assert warned == ""


def test_spans_of_a_role_have_its_name():
    shown, _ = run("console", role="actor")
    assert '"name": "trainer.actor.step"' in shown
    assert '"name": "actor.step"' in shown


@pytest.fixture
def otlp(tmp_path):
    """A directory with a package that has exporters of those names."""
    (tmp_path / "exporters_of_otlp.py").write_text(EXPORTERS_OF_OTLP)
    information = tmp_path / "exporters_of_otlp-1.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: exporters-of-otlp\nVersion: 1\n")
    (information / "entry_points.txt").write_text(ENTRY_POINTS)
    return tmp_path


@pytest.mark.parametrize(
    ("variables", "exporter"),
    [
        ({}, "Grpc"),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, "Http"),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc"}, "Grpc"),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf"}, "Http"),
    ],
)
def test_spans_go_by_the_protocol_of_the_environment(otlp, variables, exporter):
    shown, warned = run("otlp", path=[otlp], **variables)
    assert f"sent by {exporter}" in shown
    assert warned == ""


@pytest.mark.parametrize("python_warnings", ["default", "error"])
@pytest.mark.parametrize(
    ("exporters", "variables", "why"),
    [
        ("console,carrier-pigeon", {}, "ImportError: no package has the exporter 'carrier-pigeon'"),
        ("console", {"OTEL_PROPAGATORS": "smoke-signals"}, "smoke-signals"),
        ("console", {"OTEL_BSP_SCHEDULE_DELAY": "-1"}, "ValueError"),
        ("otlp", {"OTEL_EXPORTER_OTLP_PROTOCOL": "pigeon"}, "must be grpc or http/protobuf, not 'pigeon'"),
    ],
)
def test_what_is_wrong_in_the_environment_is_said_once_and_calls_go_on(exporters, variables, why, python_warnings):
    shown, warned = run(exporters, PYTHONWARNINGS=python_warnings, **variables)
    assert shown.count("carrier None") == 2
    assert (warned.count("no call is traced"), why in warned) == (1, True)


def test_threads_that_make_their_first_calls_at_once_have_one_provider(monkeypatch):
    made = []

    def slow(exporters):
        made.append(exporters)
        time.sleep(0.2)
        raise ImportError(exporters)

    monkeypatch.setattr(tracing, "_provider", slow)
    monkeypatch.setenv(tracing.EXPORTERS, "slow")
    threads = [threading.Thread(target=tracing.of_call, args=("trainer", "", "step")) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == ["slow"]


def fail(*args, **kwargs):
    raise RuntimeError("of the SDK")


class Whole(SpanProcessor): ...


class FailsAtStart(SpanProcessor):
    on_start = fail


class FailsAtEnd(SpanProcessor):
    on_end = fail


class FailsToSample(Sampler):
    should_sample = fail
    get_description = fail


class FailsToInject(TraceContextTextMapPropagator):
    inject = fail


class FailsToExtract(TraceContextTextMapPropagator):
    extract = fail


@pytest.fixture
def traced(monkeypatch):
    """Let calls be traced by what is given, and return the finished spans."""
    monkeypatch.setattr(tracing, "_logged", set())

    def begin(processor=Whole, sampler=ALWAYS_ON, propagator=TraceContextTextMapPropagator):
        kept, provider = InMemorySpanExporter(), TracerProvider(sampler=sampler, shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(kept))
        provider.add_span_processor(processor())
        monkeypatch.setattr(tracing, "_tracer", lambda: provider.get_tracer("test"))
        monkeypatch.setattr(propagate, "get_global_textmap", propagator)
        return kept.get_finished_spans

    return begin


def call(error=None):
    """Call a method on a rank, which may raise."""
    with tracing.of_call("trainer", "", "step"), tracing.of_rank("step", tracing.present_call()):
        if error is not None:
            raise error


@pytest.mark.parametrize("error", [ValueError("of the user"), StopIteration("of the user")])
def test_the_users_exception_is_in_each_span_and_goes_on(traced, caplog, error):
    spans = traced()
    with pytest.raises(type(error), match="of the user") as raised:
        call(error)
    assert raised.value is error
    assert [span.name for span in spans()] == ["step", "trainer.step"]
    assert all(span.events[0].attributes["exception.message"] == "of the user" for span in spans())
    assert caplog.messages == []


@pytest.mark.parametrize(
    "broken",
    [
        {"processor": FailsAtStart},
        {"processor": FailsAtEnd},
        {"sampler": FailsToSample()},
        {"propagator": FailsToInject},
        {"propagator": FailsToExtract},
    ],
)
def test_what_opentelemetry_raises_in_a_call_is_said_once_and_the_call_goes_on(traced, caplog, broken):
    traced(**broken)
    call()
    with pytest.raises(ValueError, match="of the user"):
        call(ValueError("of the user"))
    assert tracing.present_call() is None
    assert caplog.messages == ["a span is missing or incomplete: RuntimeError: of the SDK"]


def test_a_call_whose_carrier_cannot_be_made_still_is_a_span(traced):
    spans = traced(propagator=FailsToInject)
    call()
    assert [(span.name, span.status.is_ok) for span in spans()] == [("trainer.step", True)]


def test_a_method_that_can_get_no_carrier_gets_none_of_an_outer_call(traced):
    traced()
    with tracing.of_call("trainer", "", "step"), tracing.of_call("trainer", "", "wrapped", reaches_ranks=False):
        assert tracing.present_call() is None
