"""Which roles the ranks of a group can have, and what a role's group is."""

import functools
from types import SimpleNamespace

import pytest

from workergroups import (
    GroupClosedError,
    RayClassWithInitArgs,
    RayWorkerGroup,
    Worker,
    create_colocated_worker_cls,
    register,
)
from workergroups.single_controller.base.decorator import registered_methods


class Role(Worker):
    @register()
    def step(self):
        pass

    def other(self):
        pass


class Handle:
    """A rank's actor handle, which returns what is called instead of a reference."""

    def __getattr__(self, method):
        return SimpleNamespace(remote=lambda *args, **kwargs: (method, args, kwargs))


@pytest.fixture
def whole():
    roles = create_colocated_worker_cls({name: RayClassWithInitArgs(Role) for name in ("actor", "critic")})
    return RayWorkerGroup(worker_handles=[Handle(), Handle()], ray_cls_with_init=roles)


@pytest.mark.parametrize("role", ["rank", "world_size", "worker_dict", "fused_worker_dict", "call_role", "__init__"])
def test_a_role_with_the_name_of_something_else_in_a_rank_is_refused(role):
    with pytest.raises(ValueError, match=f"a role cannot be called '{role}': ranks have an attribute"):
        create_colocated_worker_cls({role: RayClassWithInitArgs(Role)})


@pytest.mark.parametrize("role", ["actor", "actor_rollout", "critic", "ref", "rm", "role"])
def test_the_names_that_verl_gives_roles_are_taken(role):
    ranks = create_colocated_worker_cls({role: RayClassWithInitArgs(Role)})
    assert [each for each in registered_methods(ranks.user_class) if each.endswith("step")] == [f"{role}_step"]


def test_a_roles_group_passes_for_a_worker_group_as_with_verl(whole):
    actor = whole.spawn(["actor"])["actor"]
    assert isinstance(actor, RayWorkerGroup)
    assert (actor.role, actor.world_size, actor.workers) == ("actor", 2, whole.workers)


def test_a_roles_group_calls_methods_of_the_role(whole):
    actor = whole.spawn(["actor"])["actor"]
    assert actor.execute_rank_zero("step", 1) == ("actor_step", (1,), {})
    assert actor.execute_rank_zero("other", a=1) == ("call_role", ("actor", "other"), {"a": 1})
    assert whole.execute_rank_zero("actor_step") == ("actor_step", (), {})


def test_a_wrapped_method_of_a_role_is_one_of_the_ranks_too():
    class Wrapped(Role):
        step = functools.wraps(Role.step)(lambda self: None)

    ranks = create_colocated_worker_cls({"actor": RayClassWithInitArgs(Wrapped), "critic": RayClassWithInitArgs(Role)})
    methods = registered_methods(ranks.user_class)
    assert (methods["actor_step"].is_wrapped, methods["critic_step"].is_wrapped) == (True, False)


def test_fused_roles_are_attributes_of_the_group(whole):
    whole.fuse(["actor", "critic"])
    assert whole.critic.execute_all("step") == [("critic_step", (), {})] * 2


def test_closing_a_roles_group_leaves_the_others_alone(whole):
    actor, critic = whole.spawn(["actor", "critic"]).values()
    actor.close()
    with pytest.raises(GroupClosedError, match="role 'actor' is closed, so 'step' cannot be called"):
        actor.execute_all("step")
    assert critic.execute_rank_zero("step")


def test_closing_the_whole_group_closes_the_groups_of_its_roles(whole):
    actor = whole.spawn(["actor"])["actor"]
    whole.close()
    with pytest.raises(GroupClosedError, match="this group is closed, so 'actor_step' cannot be called"):
        actor.execute_all("step")


def test_a_role_that_the_ranks_do_not_have_is_refused(whole):
    with pytest.raises(ValueError, match="no role 'rm' with registered methods; it has actor, critic"):
        whole.spawn(["rm"])
