"""Several roles in one process per rank."""

from __future__ import annotations

import os

import pytest
import ray

from workergroups import (
    Dispatch,
    GroupClosedError,
    RayClassWithInitArgs,
    RayWorkerGroup,
    Worker,
    create_colocated_worker_cls,
    create_colocated_worker_raw_cls,
    register,
)

pytestmark = pytest.mark.usefixtures("local_ray")


@ray.remote
class Actor(Worker):
    def __init__(self) -> None:
        super().__init__()
        self._register_dispatch_collect_info("mesh", dp_rank=self.rank, is_collect=True)

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def add(self, x):
        return x + self.rank

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def critics_value(self):
        return self.fused_worker_dict["critic"].val

    def pid(self):
        return os.getpid()


class Critic(Worker):
    def __init__(self, val) -> None:
        super().__init__()
        self.val = val

    @register(dispatch_mode=Dispatch.ALL_TO_ALL)
    def sub(self, x):
        return x - self.val

    def pid(self):
        return os.getpid()


class ActorRollout(Worker):
    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    async def generate(self, x):
        return x * 2


def roles():
    return {"actor": RayClassWithInitArgs(Actor), "critic": RayClassWithInitArgs(Critic, val=10)}


def test_each_role_is_a_group_of_its_own_in_the_same_processes(pool):
    with RayWorkerGroup(pool, create_colocated_worker_cls(roles())) as group:
        assert group.worker_names[0].endswith("WorkerDict_0:0")
        assert group.actor_add(1) == [1, 2]
        spawned = group.spawn(prefix_set={"actor", "critic"})
        actor, critic = spawned["actor"], spawned["critic"]
        assert actor.add(1) == [1, 2]
        assert critic.sub(x=[11, 12]) == [1, 2]
        assert actor.critics_value() == [10, 10]
        assert actor.execute_all_sync("pid") == critic.execute_all_sync("pid")
        assert actor._query_dispatch_info("mesh") == [0, 1]
        with pytest.raises(AttributeError, match="no method 'sub'"):
            actor.sub(1)
        with pytest.raises(ValueError, match=r"no role 'reward' .* it has actor, critic"):
            group.spawn({"reward"})

        found = RayWorkerGroup.from_detached(worker_names=group.worker_names)
        assert found.spawn({"critic"})["critic"].sub([11, 11]) == [1, 1]
    with pytest.raises(GroupClosedError):
        actor.add(1)


def test_a_role_does_not_capture_one_whose_name_it_begins(pool):
    classes = {**roles(), "actor_rollout": RayClassWithInitArgs(ActorRollout)}
    with RayWorkerGroup(pool, create_colocated_worker_cls(classes)) as group:
        spawned = group.spawn(classes)
        assert spawned["actor_rollout"].generate(2) == [4, 4]
        with pytest.raises(AttributeError, match="no method 'rollout_generate'"):
            spawned["actor"].rollout_generate(1)


def test_a_fused_class_adds_methods_that_use_the_roles(pool):
    class Hybrid(create_colocated_worker_raw_cls(roles())):
        @register(dispatch_mode=Dispatch.ONE_TO_ALL)
        def both(self, x):
            return self.critic.sub(self.actor.add(x))

    with RayWorkerGroup(pool, RayClassWithInitArgs(Hybrid)) as group:
        group.fuse(["actor", "critic"])
        assert group.critic.sub(group.actor.add(0.5)) == group.both(0.5) == [-9.5, -8.5]


def test_methods_that_would_have_one_name_are_refused():
    class Rollout(Worker):
        @register(dispatch_mode=Dispatch.ONE_TO_ALL)
        def rollout_x(self): ...

    class Short(Worker):
        @register(dispatch_mode=Dispatch.ONE_TO_ALL)
        def x(self): ...

    with pytest.raises(ValueError, match="would be called 'actor_rollout_x'"):
        create_colocated_worker_cls(
            {"actor": RayClassWithInitArgs(Rollout), "actor_rollout": RayClassWithInitArgs(Short)}
        )


def test_a_worker_can_hold_another(pool):
    class Outer(Worker):
        def __init__(self, val) -> None:
            super().__init__()
            self.inner = Critic(val)

        @register(dispatch_mode=Dispatch.ONE_TO_ALL)
        def get(self):
            return self.inner.val + self.inner.rank

    with RayWorkerGroup(pool, RayClassWithInitArgs(Outer, 2)) as group:
        assert group.get() == [2, 3]
