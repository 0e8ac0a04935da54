"""The user's arguments may have any name, also one that a parameter of the library's has."""

from __future__ import annotations

import pytest

from workergroups import RayClassWithInitArgs, Worker, create_colocated_worker_raw_cls
from workergroups.single_controller.base import ClassWithInitArgs
from workergroups.single_controller.base.call_forms import first_by_name
from workergroups.single_controller.base.decorator import Dispatch, get_predefined_dispatch_fn, registered_methods
from workergroups.single_controller.base.parallel_ranks import ParallelRanks

OUR_NAMES = (
    "args", "chunks", "cls", "func", "function", "group", "kwargs", "launch", "method", "method_name", "name",
    "options", "output", "plan_of", "ray_cls", "ray_cls_with_init", "role", "worker", "worker_group", "größe",
    "two words",
)  # fmt: skip
ARGUMENTS = {name: index for index, name in enumerate(OUR_NAMES)}


class Anything:
    def __init__(this, *args, **kwargs):
        this.got = args, kwargs


class FakeGroup:
    world_size = 2

    def __init__(self):
        self._mesh_plans = {}

    def share(self, value):
        return value

    def _query_parallel_ranks(self):
        return [ParallelRanks(0, 0, dp_rank) for dp_rank in range(2)]


class Batch:
    def chunk(self, chunks):
        return [self] * chunks


@pytest.mark.parametrize("kind", [ClassWithInitArgs, RayClassWithInitArgs])
def test_a_constructors_arguments_may_have_any_name(kind):
    described = kind(Anything, 1, self=2, **ARGUMENTS)
    assert described.cls is Anything
    assert described().got == ((1,), {"self": 2, **ARGUMENTS})


@pytest.mark.parametrize("kind", [ClassWithInitArgs, RayClassWithInitArgs])
def test_the_class_may_be_given_by_name(kind):
    described = kind(cls=Anything, x=1)
    assert described.cls is Anything
    assert described().got == ((), {"x": 1})
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'cls'"):
        kind(x=1)


def test_the_first_argument_may_be_given_by_name_only_where_none_is_given_by_position():
    class Group:
        @first_by_name("method_name")
        def run(self, method_name, /, *args, **kwargs):
            return method_name, args, kwargs

    assert Group().run(method_name="add", x=1) == ("add", (), {"x": 1})
    assert Group().run("add", method_name="x") == ("add", (), {"method_name": "x"})


@pytest.mark.parametrize(
    "mode", ["ONE_TO_ALL", "ALL_TO_ALL", "DP_COMPUTE", "DP_COMPUTE_PROTO", "3D_PROTO", "3D_PP_ONLY"]
)
def test_a_methods_arguments_may_have_any_name(mode):
    value = [1, 2] if mode == "DP_COMPUTE" else Batch()
    dispatch = get_predefined_dispatch_fn(Dispatch[mode])["dispatch_fn"]
    _, kwargs = dispatch(FakeGroup(), **dict.fromkeys(OUR_NAMES, value))
    assert set(OUR_NAMES) <= set(kwargs)


def test_a_roles_arguments_may_have_any_name(monkeypatch):
    class Role(Worker):
        def __init__(self, **kwargs):
            self.got = kwargs

        def method(this, **kwargs):
            return kwargs

    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.setenv(name, "1")
    both = create_colocated_worker_raw_cls({"role": RayClassWithInitArgs(Role, **ARGUMENTS)})()
    assert both.role.got == ARGUMENTS
    assert both.call_role("role", "method", **ARGUMENTS) == ARGUMENTS
    run = lambda *args, **kwargs: (args, kwargs)  # noqa: E731
    assert both.execute_func_rank_zero(run, 1, **ARGUMENTS) == ((1,), ARGUMENTS)
    assert both.execute_func_rank_zero(func=run) == ((), {})
    assert "execute_func_rank_zero" in registered_methods(type(both))


class Policy:
    def __init__(self, lr, batch_size=8, *, seed=0):
        pass


@pytest.mark.parametrize(
    ("args", "kwargs", "said"),
    [
        ((), {"learning_rate": 2}, "missing a required argument: 'lr'; unexpected 'learning_rate', did you mean 'lr'?"),
        (
            (),
            {"LR": 1, "sead": 2},
            "missing a required argument: 'lr'; unexpected 'LR'; unexpected 'sead', did you mean 'seed'?",
        ),
        (
            (1,),
            {"batchsize": 2},
            "unexpected keyword argument 'batchsize'; did you mean 'batch_size'?",
        ),
        ((1,), {"colour": 2}, "got an unexpected keyword argument 'colour'"),
        ((1, 2, 3), {}, "too many positional arguments"),
    ],
)
def test_a_wrong_name_of_an_argument_is_answered_with_the_likely_one(args, kwargs, said):
    with pytest.raises(TypeError) as raised:
        RayClassWithInitArgs(Policy, *args, **kwargs).check_arguments()
    assert str(raised.value).endswith(said)
