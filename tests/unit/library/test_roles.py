"""Which roles the ranks of a group can have."""

import pytest

from workergroups import RayClassWithInitArgs, Worker, create_colocated_worker_cls


class Role(Worker):
    pass


@pytest.mark.parametrize("role", ["rank", "world_size", "worker_dict", "fused_worker_dict", "call_role", "__init__"])
def test_a_role_with_the_name_of_something_else_in_a_rank_is_refused(role):
    with pytest.raises(ValueError, match=f"a role cannot be called '{role}'"):
        create_colocated_worker_cls({role: RayClassWithInitArgs(Role)})


@pytest.mark.parametrize("role", ["actor", "actor_rollout", "critic", "ref", "rm", "role"])
def test_the_names_that_verl_gives_roles_are_taken(role):
    assert create_colocated_worker_cls({role: RayClassWithInitArgs(Role)})
