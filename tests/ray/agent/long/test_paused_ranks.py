"""What the executor reports of ranks that are paused for a debugger, in whatever state they are."""

import pytest
import ray

import workergroups
from tests.ray.agent.planned import Group, launch
from workergroups.debugger import announced
from workergroups.debugger.dap import Attached

STOPPER = """
import workergroups

class Stopper(workergroups.Worker):
    def __init__(self, at_construction=None):
        super().__init__()
        if self.rank == at_construction:
            breakpoint()

    @workergroups.register(workergroups.Dispatch.ONE_TO_ALL)
    def fail(self):
        wanted = "plums"
        raise LookupError(wanted)
"""


def stopper(**more):
    return Group(code=STOPPER, launch=launch("accumulator.Stopper", **more))


def report_of(reports):
    return reports.groups["trainer"].report


def listening():
    """The pauses whose debuggers listen, as the ranks announce them."""
    return [pause for pause in announced.announced().values() if pause.port]


def can_be_attached_to(reports):
    return report_of(reports).pauses if listening() else ()


def test_a_constructor_that_is_paused_is_reported_until_it_continues(agent):
    group = stopper(init_kwargs={"at_construction": 1})
    (pause,) = can_be_attached_to(agent.until(can_be_attached_to, group))
    assert (pause.rank, pause.attached) == (1, False)
    assert pause.where.endswith("in Stopper.__init__")
    (own,) = listening()
    assert own.directory.startswith("/tmp/workergroups/code/")
    editor = Attached(own.port)
    editor.wait_until_stopped()
    assert report_of(agent.go_on_until(lambda reports: report_of(reports).pauses[0].attached)).paused == "1"
    editor.close()
    report = report_of(agent.go_on_until(lambda reports: report_of(reports).ready_count == 2))
    agent.go_on_until(lambda reports: not report_of(reports).pauses)
    assert report.failures == ()


def test_an_exception_of_a_group_that_wants_it_is_reported_and_what_is_dead_is_not_paused(agent):
    group = stopper(post_mortem=True)
    agent.until(lambda reports: report_of(reports).ready_count == 2, group)
    attached = workergroups.attach("trainer", timeout=20)
    call = attached.execute_rank_zero_async("fail")
    (pause,) = can_be_attached_to(agent.go_on_until(can_be_attached_to))
    assert pause.where.endswith("in Stopper.fail after LookupError: plums")
    ray.kill(attached.workers[0])
    report = report_of(agent.go_on_until(lambda reports: report_of(reports).failures))
    assert report.pauses == ()
    agent.look()
    assert announced.announced() == {}
    with pytest.raises(ray.exceptions.RayActorError):
        ray.get(call)
