"""Several roles in each rank, as a WorkerGroup's `roles` say."""

import workergroups
from tests.ray.agent.planned import Group
from workergroups_api.launch import Launch, RoleLaunch

CODE = """
import os
from workergroups import Dispatch, Worker, register

class Actor(Worker):
    def __init__(self, scale=1):
        super().__init__()
        self.scale = scale

    @register(Dispatch.ONE_TO_ALL)
    def act(self, x):
        return x * self.scale, os.getpid()

class Critic(Worker):
    @register(Dispatch.ONE_TO_ALL)
    def judge(self, x):
        return self.fused_worker_dict["actor"].act(x)[0] + self.rank, os.getpid()

    def unregistered(self):
        return "any method"
"""


def group(*roles):
    return Group(code=CODE, launch=Launch(roles=roles, config_map="code"))


ACTOR = RoleLaunch(name="actor", class_path="accumulator.Actor", init_kwargs={"scale": 3})
CRITIC = RoleLaunch(name="critic", class_path="accumulator.Critic")


def state_of(reports):
    return reports.groups["trainer"].report


def test_each_role_has_its_handle_and_all_are_in_one_process_per_rank(agent):
    agent.until(lambda reports: state_of(reports).ready_count == 2, group(ACTOR, CRITIC))
    handles = workergroups.attach("trainer", timeout=20).spawn(["actor", "critic"])
    acted, judged = handles["actor"].act(2), handles["critic"].judge(2)
    assert [value for value, _ in acted] == [6, 6]
    assert [value for value, _ in judged] == [6, 7]
    assert [pid for _, pid in acted] == [pid for _, pid in judged]
    assert handles["critic"].execute_rank_zero_sync("unregistered") == "any method"


def test_arguments_that_a_role_does_not_take_fail_the_launch_and_name_its_class(agent):
    wrong = ACTOR.model_copy(update={"init_kwargs": {"speed": 1}})
    reports = agent.until(lambda reports: state_of(reports).state == "LaunchFailed", group(wrong, CRITIC))
    assert "Actor(scale=1): got an unexpected keyword argument 'speed'" in state_of(reports).message
