"""Methods and roles whose names a group has for itself are refused by name, before anything is created."""

from __future__ import annotations

import functools
from types import SimpleNamespace

import pytest

from workergroups import (
    Dispatch,
    RayClassWithInitArgs,
    RayWorkerGroup,
    Worker,
    create_colocated_worker_cls,
    register,
)
from workergroups.single_controller.ray.rank_group import RoleGroup
from workergroups.single_controller.ray.taken_names import OF_HANDLES, is_taken


def class_with(name):
    def method(self): ...

    method.__name__ = name
    return type("Model", (), {name: register(dispatch_mode=Dispatch.ONE_TO_ALL)(method)})


TAKEN = [
    *("close", "workers", "share", "world_size", "spawn", "fuse", "renew", "stacks", "calls", "deadline"),
    *("worker_names", "master_address", "execute_all", "execute_rank_zero_sync", "from_detached"),
    *("resource_pool", "name_prefix", "incarnation", "role", "_get", "_ranks", "_for_one_call", "__enter__"),
]


@pytest.mark.parametrize("name", TAKEN)
def test_a_class_whose_method_has_a_name_of_the_groups_is_refused(name):
    message = f"Model registers a method '{name}', but groups have"
    with pytest.raises(ValueError, match=message):
        RayClassWithInitArgs(class_with(name)).check_arguments()
    with pytest.raises(ValueError, match=message):
        create_colocated_worker_cls({"actor": RayClassWithInitArgs(class_with(name))})
    ranks = [SimpleNamespace()]
    with pytest.raises(ValueError, match=f"the ranks' class registers a method '{name}'"):
        RayWorkerGroup(worker_handles=ranks, ray_cls_with_init=RayClassWithInitArgs(class_with(name)))


@pytest.mark.parametrize("name", ["close", "workers", "share", "name_prefix", "spawn"])
def test_a_role_with_a_name_of_the_groups_is_refused(name):
    with pytest.raises(ValueError, match=f"a role cannot be called '{name}': groups have an attribute"):
        create_colocated_worker_cls({name: RayClassWithInitArgs(class_with("train"))})


@pytest.mark.parametrize(
    ("role", "method", "name"),
    [("get_fused", "worker_by_name", "get_fused_worker_by_name"), ("get", "master_addr_port", "get_master_addr_port")],
)
def test_a_roles_method_does_not_replace_one_of_the_ranks(role, method, name):
    with pytest.raises(ValueError, match=f"would be called '{name}' in ranks"):
        create_colocated_worker_cls({role: RayClassWithInitArgs(class_with(method))})


def test_a_combined_name_that_a_group_has_is_refused():
    both = create_colocated_worker_cls({"execute": RayClassWithInitArgs(class_with("all"))})
    with pytest.raises(ValueError, match="registers a method 'execute_all'"):
        both.check_arguments()


def test_all_that_groups_set_is_known_and_names_of_workers_are_free():
    rank_class = RayClassWithInitArgs(class_with("train"))
    whole = RayWorkerGroup(worker_handles=[SimpleNamespace()], ray_cls_with_init=rank_class)
    roles = create_colocated_worker_cls({"actor": rank_class})
    combined = RayWorkerGroup(worker_handles=[SimpleNamespace()], ray_cls_with_init=roles)
    assert {*vars(whole), *vars(RoleGroup(combined, "actor"))} - {"train"} == OF_HANDLES
    RayClassWithInitArgs(Worker).check_arguments()
    assert not is_taken("train")


def numbers(self):
    yield 1


async def numbers_later(self):
    yield 1


@functools.wraps(numbers_later)
def hidden(self):
    return numbers(self)


@pytest.mark.parametrize("method", [numbers, numbers_later])
@pytest.mark.parametrize("blocking", [True, False])
def test_a_generator_is_refused_where_it_is_registered(method, blocking):
    with pytest.raises(TypeError, match=f"the registered method {method.__name__} is a generator"):
        register(dispatch_mode=Dispatch.ONE_TO_ALL, blocking=blocking)(method)
    assert register(dispatch_mode=Dispatch.DIRECT_ROLLOUT_METHOD)(method)


def test_a_generator_behind_another_decorator_is_named_when_it_is_called():
    with pytest.raises(TypeError, match="the registered method numbers_later is a generator"):
        register(dispatch_mode=Dispatch.ONE_TO_ALL)(hidden)(None)
