"""What Kubernetes runs in a node before it ends, and for how long."""

import pytest

from tests.unit.operator.make import pool
from workergroups_operator.templates.notice import seconds_of, with_notice


def spec_of(grace=35, **container):
    return {
        "terminationGracePeriodSeconds": grace,
        "containers": [{"name": "ray-worker", **container}, {"name": "sidecar"}],
    }


def lifecycle(**more):
    command = ["python3", "-m", "workergroups.node.notice", "30"]
    return {"preStop": {"exec": {"command": command}}, **more}


def test_the_ranks_have_the_grace_period_but_its_last_seconds():
    ours, sidecar = with_notice(spec_of(), "ray-worker")["containers"]
    assert ours["lifecycle"] == lifecycle()
    assert sidecar == {"name": "sidecar"}
    short = with_notice(spec_of(grace=3), "ray-worker")["containers"][0]
    assert short["lifecycle"]["preStop"]["exec"]["command"][-1] == "0"


def test_what_the_user_runs_before_the_end_stays():
    theirs = {"preStop": {"sleep": {"seconds": 3}}}
    assert with_notice(spec_of(lifecycle=theirs), "ray-worker") == spec_of(lifecycle=theirs)
    started = {"postStart": {"exec": {"command": ["true"]}}}
    assert with_notice(spec_of(lifecycle=started), "ray-worker")["containers"][0]["lifecycle"] == lifecycle(**started)


@pytest.mark.parametrize(
    "spec",
    [{}, spec_of(grace="odd"), spec_of() | {"containers": "odd"}, spec_of(lifecycle="odd"), spec_of(name="other")],
)
def test_what_is_no_pod_is_left_to_the_api_server(spec):
    assert with_notice(spec, "ray-worker") == spec


@pytest.mark.parametrize(
    ("template", "seconds"),
    [
        ({}, 30),
        ({"podTemplate": {"spec": {"terminationGracePeriodSeconds": 125}}}, 120),
        ({"podTemplate": {"spec": {"terminationGracePeriodSeconds": 3}}}, 0),
        ({"podTemplate": {"spec": {"terminationGracePeriodSeconds": "odd"}}}, 30),
    ],
)
def test_ranks_that_end_without_their_pod_have_as_long(template, seconds):
    assert seconds_of(pool(**template)) == seconds
