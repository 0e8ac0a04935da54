"""Whatever a constructor or a method takes reaches it: any name, any value."""

from __future__ import annotations

import pytest
import ray

from workergroups import (
    Dispatch,
    RayClassWithInitArgs,
    RayResourcePool,
    RayWorkerGroup,
    Worker,
    create_colocated_worker_cls,
    register,
)

pytestmark = pytest.mark.usefixtures("local_ray")

NAMES = (
    "args", "cls", "context", "func", "group", "kwargs", "keywords", "launch", "method_name", "name", "options",
    "plan_of", "ray_cls", "role", "rank", "values", "worker", "worker_group", "größe", "two words", "class", "",
)  # fmt: skip
ANYTHING = {
    "nothing": None,
    "nested": {"a": [None, {"b": [[], {}, None]}], "c": {"d": None}},
    "text": "ß 漢字 👩‍🚀 \x00 \u2028",
    "👩‍🚀": "a key",
    "lists": [[1, None], [2, None]],
    "number": 10**30,
}


class Keeper(Worker):
    def __init__(this, *args, **kwargs):
        super().__init__()
        this.got = list(args), kwargs

    def constructed(this):
        return this.got

    def called(this, *args, **kwargs):
        return list(args), kwargs

    @register(Dispatch.ONE_TO_ALL)
    def to_all(this, *args, **kwargs):
        return list(args), kwargs


@pytest.fixture(scope="module")
def pool(local_ray):
    with RayResourcePool([1], use_gpu=False, max_colocate_count=4) as pool:
        yield pool


@pytest.mark.parametrize("decorate", [lambda cls: cls, ray.remote], ids=["plain", "ray.remote"])
def test_a_constructor_gets_arguments_of_any_name_and_value(pool, decorate):
    kwargs = {**dict.fromkeys(NAMES, 1), **ANYTHING, "self": "mine", "_ray_trace_ctx": None}
    args = [None, *ANYTHING.values()]
    with RayWorkerGroup(pool, RayClassWithInitArgs(decorate(Keeper), *args, **kwargs)) as group:
        assert group.execute_rank_zero_sync("constructed") == (args, kwargs)


def test_a_constructor_gets_the_values_of_references(pool):
    refs = ray.put("one"), ray.put("two")
    with RayWorkerGroup(pool, RayClassWithInitArgs(Keeper, refs[0], cls=refs[1])) as group:
        assert group.execute_rank_zero_sync("constructed") == (["one"], {"cls": "two"})


def test_methods_get_arguments_of_any_name_and_value(pool):
    kwargs = {**dict.fromkeys(NAMES, 1), **ANYTHING}
    with RayWorkerGroup(pool, RayClassWithInitArgs(Keeper)) as group:
        assert group.to_all(None, **kwargs) == [([None], kwargs)]
        assert group.execute_all_sync("called", None, **kwargs) == [([None], kwargs)]
        assert group.execute_rank_zero_sync("called", None, **kwargs) == ([None], kwargs)
        assert group.execute_func_rank_zero(lambda **more: more, **kwargs) == kwargs
        assert group.execute_all_sync(method_name="called") == [([], {})]
        assert group.execute_rank_zero_sync(method_name="called", x=1) == ([], {"x": 1})


def test_roles_get_arguments_of_any_name_and_value(pool):
    kwargs = {**dict.fromkeys(NAMES, 1), **ANYTHING}
    both = create_colocated_worker_cls({"role": RayClassWithInitArgs(Keeper, **kwargs)})
    with RayWorkerGroup(pool, both) as group:
        role = group.spawn({"role"})["role"]
        assert role.execute_rank_zero_sync("constructed") == ([], kwargs)
        assert role.to_all(None, **kwargs) == [([None], kwargs)]
