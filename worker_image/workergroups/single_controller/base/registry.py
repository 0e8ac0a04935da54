"""The functions of each named dispatch mode."""

from __future__ import annotations

from workergroups.errors import InvalidValueError

from .dispatch import (
    CollectFn,
    DispatchFn,
    DispatchFns,
    collect_all_to_all,
    collect_dp_compute_data_proto,
    dispatch_all_to_all,
    dispatch_direct_rollout,
    dispatch_dp_compute,
    dispatch_dp_compute_data_proto,
    dispatch_dp_compute_data_proto_with_func,
    dispatch_one_to_all,
)
from .mesh_dispatch import fns_of_3d
from .modes import Dispatch

_JOINED = dispatch_dp_compute_data_proto, collect_dp_compute_data_proto
_FUNCTIONS: dict[Dispatch, tuple[DispatchFn, CollectFn]] = {
    Dispatch.ONE_TO_ALL: (dispatch_one_to_all, collect_all_to_all),
    Dispatch.ALL_TO_ALL: (dispatch_all_to_all, collect_all_to_all),
    Dispatch.DP_COMPUTE: (dispatch_dp_compute, collect_all_to_all),
    Dispatch.DP_COMPUTE_PROTO: _JOINED,
    Dispatch.DP_COMPUTE_PROTO_WITH_FUNC: (dispatch_dp_compute_data_proto_with_func, collect_dp_compute_data_proto),
    Dispatch.DP_COMPUTE_METRIC: (dispatch_dp_compute_data_proto, collect_all_to_all),
    Dispatch.DP_PROTO: _JOINED,
    Dispatch.DIRECT_ROLLOUT_METHOD: (dispatch_direct_rollout, collect_all_to_all),
}
_REGISTRY: dict[Dispatch, DispatchFns] = {
    mode: DispatchFns(dispatch_fn=dispatch_fn, collect_fn=collect_fn)
    for mode, (dispatch_fn, collect_fn) in _FUNCTIONS.items()
} | {Dispatch[name]: fns for name, fns in fns_of_3d().items()}


def get_predefined_dispatch_fn(dispatch_mode: Dispatch) -> DispatchFns:
    """Return the two functions behind a named mode.

    Raises:
        ValueError: No functions are registered for the mode.
    """
    try:
        return _REGISTRY[dispatch_mode]
    except KeyError:
        known = ", ".join(mode.name for mode in _REGISTRY)
        raise InvalidValueError(f"no dispatch functions for {dispatch_mode!r}; the modes are {known}") from None


def register_dispatch_mode(dispatch_mode_name: str, dispatch_fn: DispatchFn, collect_fn: CollectFn) -> None:
    """Add a named mode, which is then ``Dispatch.NAME``.

    Raises:
        ValueError: The name is taken.
    """
    mode = Dispatch.register(dispatch_mode_name)
    _REGISTRY[mode] = {"dispatch_fn": dispatch_fn, "collect_fn": collect_fn}


def update_dispatch_mode(dispatch_mode: Dispatch, dispatch_fn: DispatchFn, collect_fn: CollectFn) -> None:
    """Give a named mode other functions; groups made from then on use them.

    Raises:
        ValueError: The mode has no functions to replace.
    """
    get_predefined_dispatch_fn(dispatch_mode)
    _REGISTRY[dispatch_mode] = {"dispatch_fn": dispatch_fn, "collect_fn": collect_fn}
