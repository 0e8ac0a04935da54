"""Where the spans of a process go."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys, warnings
warnings.simplefilter("error" if "{exporters}" in ("", "none") else "always")
from workergroups import tracing
for method in ("step", "save"):
    with tracing.of_call("trainer", method):
        carrier = tracing.present_call()
        with tracing.of_rank(method, carrier):
            print("carrier", carrier and sorted(carrier))
    assert tracing.present_call() is None
print("imported", "opentelemetry" in sys.modules)
"""


def run(exporters, **environment):
    """What a program prints, and of what it warns."""
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(exporters=exporters)],
        env={"PYTHONPATH": ":".join(sys.path), "OTEL_TRACES_EXPORTER": exporters, **environment},
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
    assert "carrier ['traceparent']" in shown
    assert '"name": "trainer.step"' in shown
    assert '"name": "step"' in shown
    assert '"service.name": "policy"' in shown
    assert warned == ""


@pytest.mark.parametrize(
    ("exporters", "variables", "why"),
    [
        ("console,carrier-pigeon", {}, "ImportError: no package has the exporter 'carrier-pigeon'"),
        ("console", {"OTEL_PROPAGATORS": "smoke-signals"}, "smoke-signals"),
        ("console", {"OTEL_BSP_SCHEDULE_DELAY": "-1"}, "ValueError"),
    ],
)
def test_what_is_wrong_in_the_environment_is_said_once_and_calls_go_on(exporters, variables, why):
    shown, warned = run(exporters, **variables)
    assert shown.count("carrier None") == 2
    assert (warned.count("no call is traced"), why in warned) == (1, True)
