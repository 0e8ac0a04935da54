from __future__ import annotations

import functools
import pickle
from contextlib import nullcontext

import pytest

from workergroups import Dispatch, Execute, Worker, collect_all_to_all, register, tracing
from workergroups.single_controller.base import WorkerGroup
from workergroups.single_controller.base.decorator import RegisteredMethod, bound_methods, registered_methods


class Model:
    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def load(self, path):
        """Load it."""

    @register(dispatch_mode=Dispatch.ALL_TO_ALL, execute_mode=Execute.RANK_ZERO, blocking=False)
    async def save(self, path): ...

    def private(self): ...

    @property
    def expensive(self):
        raise AssertionError("a property must not run")


class BiggerModel(Model): ...


class RecordingGroup(WorkerGroup):
    """Two ranks that return the arguments they got."""

    world_size = 2

    def __init__(self, cls):
        super().__init__()
        vars(self).update(bound_methods(self, registered_methods(cls)))

    def execute_all(self, method_name, *args, **kwargs):
        return [method_name, args, kwargs]

    def execute_rank_zero(self, method_name, *args, **kwargs):
        return method_name, args, kwargs

    def share(self, value):
        return value

    def _get(self, method_name, output):
        return ["got", *output]


def test_registered_methods_are_found_with_their_modes():
    methods = registered_methods(BiggerModel)
    assert sorted(methods) == ["load", "save"]
    assert methods["load"].dispatch_mode is Dispatch.ONE_TO_ALL
    assert methods["load"].execute_mode is Execute.ALL
    assert methods["load"].blocking
    assert methods["save"].execute_mode is Execute.RANK_ZERO
    assert not methods["save"].blocking


def timed(method):
    @functools.wraps(method)
    def wrapper(self, path):
        return method(self, path)

    return wrapper


def test_a_method_is_wrapped_if_a_decorator_of_the_users_is_above_register():
    class Wrapped(Model):
        load = timed(Model.load)
        read = register()(timed(Model.private))

    found = {name: registered.is_wrapped for name, registered in registered_methods(Wrapped).items()}
    assert found == {"load": True, "read": False, "save": False}


def test_a_call_is_traced_with_its_role_and_reaches_ranks_unless_its_method_is_wrapped(monkeypatch):
    traced = []
    monkeypatch.setattr(tracing, "of_call", lambda *names, **more: traced.append((*names, more)) or nullcontext())
    for role, is_wrapped in (("", False), ("actor", True)):
        load = RegisteredMethod(Dispatch.ONE_TO_ALL, Execute.ALL, blocking=True, role=role, is_wrapped=is_wrapped)
        bound_methods(RecordingGroup(Model), {"load": load})["load"]("a")
    assert [(role, name, more["reaches_ranks"]) for _, role, name, more in traced] == [
        ("", "load", True),
        ("actor", "load", False),
    ]


def test_register_leaves_the_method_as_it_was():
    assert Model.load.__name__ == "load"
    assert Model.load.__doc__ == "Load it."


def test_one_to_all_repeats_each_argument_for_each_rank():
    assert RecordingGroup(Model).load("a", path="b") == ["got", "load", (["a", "a"],), {"path": ["b", "b"]}]


def test_a_call_that_does_not_block_returns_futures_of_rank_zero():
    assert RecordingGroup(Model).save([1]) == ("save", ([1],), {})


def test_a_mode_of_ones_own_sees_the_group_and_the_output():
    class Doubling:
        @register(
            dispatch_mode={
                "dispatch_fn": lambda group, x: (([x * group.world_size],), {}),
                "collect_fn": lambda group, output: output[2],
            }
        )
        def double(self, x): ...

    assert RecordingGroup(Doubling).double(4) == ([8],)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dispatch_mode": "ONE_TO_ALL"}, "dispatch_mode must be a Dispatch mode"),
        ({"dispatch_mode": {"dispatch_fn": collect_all_to_all}}, "a function under collect_fn"),
        ({"execute_mode": Dispatch.ALL_TO_ALL}, "execute_mode must be"),
    ],
)
def test_a_wrong_mode_is_refused_where_it_is_written(arguments, message):
    with pytest.raises(TypeError, match=message):
        register(**arguments)


def test_an_unknown_mode_names_the_known_ones():
    with pytest.raises(AttributeError, match=r"no mode 'ONE_TO_MANY'.*ONE_TO_ALL"):
        _ = Dispatch.ONE_TO_MANY


def test_modes_keep_their_identity_when_pickled():
    assert pickle.loads(pickle.dumps(Dispatch.ONE_TO_ALL)) is Dispatch.ONE_TO_ALL
    assert "ONE_TO_ALL" in Dispatch
    assert Dispatch["ALL_TO_ALL"] in list(Dispatch)


def test_a_worker_outside_a_group_says_what_it_needs(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(RuntimeError, match=r"'RANK' is not set: create it through a RayWorkerGroup"):
        Worker()
