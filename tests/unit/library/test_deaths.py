from __future__ import annotations

import pickle

import pytest
from ray.core.generated.common_pb2 import ActorDeathCause, ActorDiedErrorContext

from workergroups.ray_private.death import Death
from workergroups.ray_private.death_cause import decode

CONSTRUCTOR = """ray::Model.__init__() (pid=7, ip=10.0.0.1)
  File "model.py", line 3, in __init__
ValueError: no such checkpoint 💾


During handling of the above exception, another exception occurred:

ray::Model.__init__() (pid=7, ip=10.0.0.1)"""


def died(message, code="WORKER_DIED"):
    return ActorDeathCause(
        actor_died_error_context=ActorDiedErrorContext(
            error_message=message, reason=ActorDiedErrorContext.Reason.Value(code)
        )
    )


class Explosive:
    def __reduce__(self):
        return pytest.fail, ("the user's exception was unpickled",)


def test_a_constructors_exception_is_its_last_line_and_its_traceback_the_details():
    cause = ActorDeathCause()
    cause.creation_task_failure_context.formatted_exception_string = CONSTRUCTOR
    cause.creation_task_failure_context.serialized_exception = pickle.dumps(Explosive())
    death = decode(cause)
    assert death.reason == "ConstructorFailed"
    assert death.message == "ValueError: no such checkpoint 💾"
    assert death.details.startswith("ray::Model.__init__()")
    assert death.details.endswith(death.message)


def test_a_process_that_cannot_start_has_died_of_what_another_raises_for_it():
    cause = ActorDeathCause()
    raised = (
        "ray::Model.__init__() (pid=7)\nworkergroups.ray_private.failed_start.StartFailed: it ended with exit status 1"
    )
    cause.creation_task_failure_context.formatted_exception_string = raised
    assert decode(cause) == Death("ProcessDied", "it cannot start: it ended with exit status 1", raised)


@pytest.mark.parametrize(
    ("cause", "reason", "message"),
    [
        (
            died("The actor is dead because its worker process has died. Worker exit detail: exit code 3"),
            "ProcessDied",
            "exit code 3",
        ),
        (
            died("Worker exit detail: Worker unexpectedly exits with a connection error code 2. End of file. More."),
            "ProcessDied",
            "its process ended without telling Ray: it was killed (SIGKILL, or by the kernel for memory) or crashed",
        ),
        (
            died(
                "Worker exit detail: Worker exits unexpectedly. Worker exits with an exit code 3. "
                "The worker may have exceeded K8s pod memory limits."
            ),
            "ProcessExited",
            "Worker exits unexpectedly. Worker exits with an exit code 3.",
        ),
        (
            died("Worker exit detail: Worker exits with an exit code 1. The process receives a SIGTERM."),
            "ProcessDied",
            "Worker exits with an exit code 1. The process receives a SIGTERM.",
        ),
        (
            died("killed by `ray.kill`.", "UNSPECIFIED"),
            "Removed",
            "a program ended it with ray.kill, as the agent ends the ranks of an incarnation that it replaces",
        ),
        (died("said in other words", "RAY_KILL"), "Removed", "said in other words"),
        (died("the placement group was removed"), "Removed", "the placement group was removed"),
        (died("its owner has died", "OWNER_DIED"), "OwnerDied", "its owner has died"),
        (died("its node has died.", "UNSPECIFIED"), "NodeLost", "its node has died."),
        (died("said in other words", "NODE_DIED"), "NodeLost", "said in other words"),
        (died("two\n  lines"), "ProcessDied", "two lines"),
        (
            died("killed: the memory running low on the node"),
            "OutOfMemory",
            "killed: the memory running low on the node",
        ),
        (died(""), "ProcessDied", "Ray does not say why"),
        (ActorDeathCause(), "ProcessDied", "Ray does not say why"),
        (None, "ProcessDied", "Ray does not say why"),
    ],
)
def test_each_death_has_a_reason_and_one_line(cause, reason, message):
    death = decode(cause)
    assert (death.reason, death.message) == (reason, message)


def test_rays_own_killing_for_memory():
    cause = ActorDeathCause()
    cause.oom_context.error_message = "Task was killed"
    assert decode(cause) == Death("OutOfMemory", "Task was killed", "Task was killed")
