"""A call is a span of its driver, and what each rank does for it is a part of that."""

from __future__ import annotations

import functools
import os
import time

import pytest
import ray
import torch
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from workergroups import (
    DataProto,
    Dispatch,
    Execute,
    RayClassWithInitArgs,
    RayWorkerGroup,
    Worker,
    create_colocated_worker_cls,
    register,
)
from workergroups.single_controller.base.decorator import dispatch_one_to_all
from workergroups.tracing import EXPORTERS

pytestmark = pytest.mark.usefixtures("local_ray")
OUTER = "00-11112222333344445555666677778888-1234567812345678-01"


def keep_spans():
    """As a program does that sends its spans somewhere itself."""
    kept, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    trace.set_tracer_provider(provider)
    return kept


def checked(method):
    """As a user's decorator that takes only what the method takes."""

    @functools.wraps(method)
    def wrapper(self, batch):
        return method(self, batch)

    return wrapper


class Traced(Worker):
    def __init__(self, exporters):
        super().__init__()
        self.kept = keep_spans()
        os.environ[EXPORTERS] = exporters

    @register(Dispatch.ONE_TO_ALL)
    def step(self, seconds, **more):
        time.sleep(seconds)
        return sorted(more)

    @register(Dispatch.ONE_TO_ALL)
    def outer(self):
        return self.step(0)

    @register(Dispatch.ALL_TO_ALL)
    def scatter(self, value):
        return value

    @register(Dispatch.ONE_TO_ALL, execute_mode=Execute.RANK_ZERO)
    def first(self):
        return self.rank

    @register(Dispatch.DP_COMPUTE_PROTO)
    def double(self, batch):
        return DataProto.from_dict({"x": batch.batch["x"] * 2})

    @register(Dispatch.ONE_TO_ALL, blocking=False)
    def later(self):
        return self.rank

    @register({"dispatch_fn": dispatch_one_to_all, "collect_fn": lambda group, results: results[-1]})
    def last(self, **more):
        return sorted(more)

    @checked
    @register(Dispatch.ONE_TO_ALL)
    def wrapped(self, batch):
        return batch

    @register(Dispatch.ONE_TO_ALL)
    def fail(self):
        raise ValueError("of the user")

    def spans(self):
        found = [
            {
                "name": span.name,
                "trace": span.context.trace_id,
                "parent": span.parent and span.parent.span_id,
                "rank": span.attributes["workergroups.rank"],
                "seconds": (span.end_time - span.start_time) / 1e9,
                "failed": not span.status.is_ok,
            }
            for span in self.kept.get_finished_spans()
        ]
        self.kept.clear()
        return found


@pytest.fixture(scope="module")
def kept():
    return keep_spans()


@pytest.fixture
def driver(kept, monkeypatch):
    """The spans of this process."""
    monkeypatch.setenv(EXPORTERS, "otlp")
    monkeypatch.setenv("TRACEPARENT", OUTER)
    kept.clear()
    return kept


@pytest.fixture(scope="module")
def group(pool):
    with RayWorkerGroup(pool, RayClassWithInitArgs(Traced, "otlp"), name_prefix="trainer") as group:
        yield group


def of_ranks(group):
    return [span for spans in group.execute_all_sync("spans") for span in spans]


def test_the_ranks_of_a_call_are_parts_of_its_span_and_that_is_a_part_of_the_jobs(group, driver):
    assert group.step(0.2, other=1) == [["other"]] * 2
    (call,) = driver.get_finished_spans()
    assert (call.name, call.attributes["workergroups.method"]) == ("trainer.step", "step")
    assert f"{call.context.trace_id:032x}-{call.parent.span_id:016x}" in OUTER
    found = of_ranks(group)
    assert [span["rank"] for span in found] == [0, 1]
    assert {(span["name"], span["trace"], span["parent"]) for span in found} == {
        ("step", call.context.trace_id, call.context.span_id)
    }
    assert all(0.2 <= span["seconds"] < (call.end_time - call.start_time) / 1e9 for span in found)


def test_a_call_within_a_span_of_the_program_is_a_part_of_it(group, driver):
    with trace.get_tracer("program").start_as_current_span("epoch") as epoch:
        group.step(0)
    call, _ = driver.get_finished_spans()
    assert call.parent.span_id == epoch.get_span_context().span_id


def test_a_method_that_a_rank_calls_itself_has_no_span_of_its_own(group, driver):
    of_ranks(group)
    group.outer()
    assert [span["name"] for span in of_ranks(group)] == ["outer"] * 2


def test_arguments_arrive_as_without_a_span(group, driver):
    of_ranks(group)
    assert group.scatter(["a", "b"]) == ["a", "b"]
    assert group.scatter("all") == ["all", "all"]
    assert group.first() == 0
    assert [(span["name"], span["rank"]) for span in of_ranks(group)] == [
        *[("scatter", 0), ("scatter", 0), ("first", 0)],
        *[("scatter", 1), ("scatter", 1)],
    ]


def test_batches_futures_and_dispatch_functions_of_users_arrive_as_without_a_span(group, driver):
    of_ranks(group)
    padded = DataProto.from_dict({"x": torch.arange(3)}, auto_padding=True)
    assert group.double(padded).batch["x"].tolist() == [0, 2, 4]
    assert ray.get(group.later()) == [0, 1]
    assert group.last(of="user") == ["of"]
    assert {span["name"] for span in of_ranks(group)} == {"double", "later", "last"}


def test_a_method_below_a_users_decorator_gets_what_it_would_get_without_a_span(group, driver):
    of_ranks(group)
    assert group.wrapped("batch") == ["batch"] * 2
    assert [span.name for span in driver.get_finished_spans()] == ["trainer.wrapped"]
    assert of_ranks(group) == []


class Other(Worker):
    @register(Dispatch.ONE_TO_ALL)
    async def ask(self):
        return self.rank


def test_coroutines_and_roles_are_called_as_without_a_span(pool, driver):
    with RayWorkerGroup(pool, RayClassWithInitArgs(Other), name_prefix="other") as other:
        assert other.ask() == [0, 1]
    traced = {"one": RayClassWithInitArgs(Traced, "otlp"), "two": RayClassWithInitArgs(Traced, "otlp")}
    with RayWorkerGroup(pool, create_colocated_worker_cls(traced), name_prefix="roles") as whole:
        roles = whole.spawn(["one", "two"])
        assert [roles[role].scatter(["a", "b"]) for role in roles] == [["a", "b"]] * 2
        assert [roles[role].wrapped("batch") for role in roles] == [["batch"] * 2] * 2
        # Both roles are in one process, whose provider is that of the role that was made first.
        assert [span["name"] for span in of_ranks(roles["one"])] == ["one.scatter", "two.scatter"] * 2
    assert [span.name for span in driver.get_finished_spans()] == [
        *["other.ask", "roles.one.scatter", "roles.two.scatter"],
        *["roles.one.wrapped", "roles.two.wrapped"],
    ]


def test_a_method_that_raises_leaves_a_span_that_failed(group, driver):
    with pytest.raises(ValueError, match="of the user"):
        group.fail()
    (call,) = driver.get_finished_spans()
    assert not call.status.is_ok
    assert [span["failed"] for span in of_ranks(group)] == [True, True]


def test_by_default_there_are_no_spans(group, driver, monkeypatch):
    monkeypatch.delenv(EXPORTERS)
    assert group.step(0) == [[], []]
    assert driver.get_finished_spans() == ()
    assert of_ranks(group) == []


def test_a_rank_that_traces_nothing_runs_traced_calls(pool, driver):
    with RayWorkerGroup(pool, RayClassWithInitArgs(Traced, "none"), name_prefix="silent") as silent:
        assert silent.step(0) == [[], []]
        assert len(driver.get_finished_spans()) == 1
        assert of_ranks(silent) == []
