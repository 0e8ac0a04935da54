"""Adapters that are found against those that NCCL is told to use."""

import pytest

from workergroups.checking.fabric import Choice, judge_adapters, judge_settings
from workergroups.checking.findings import CheckFinding


def adapter(name, port=1, state="ACTIVE", link="InfiniBand", is_usable=True, gids=None):
    return {
        "name": name,
        "port": port,
        "interface": "ens1" if link == "Ethernet" else "",
        "state": state,
        "link": link,
        "rate": "400 Gb/sec",
        "is_usable": is_usable,
        "gids": {"0": "IB/RoCE v1"} if gids is None else gids,
    }


def node(*adapters, name="a", **settings):
    return {"node": name, "adapters": list(adapters), "settings": settings}


ROCE = {"link": "Ethernet", "gids": {"0": "IB/RoCE v1", "3": "RoCE v2"}}


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("", ["mlx5_0", "mlx5_1", "mlx5_10"]),
        ("mlx5_1", ["mlx5_1", "mlx5_10"]),
        ("=mlx5_1", ["mlx5_1"]),
        ("^mlx5_1", ["mlx5_0"]),
        ("^=mlx5_1", ["mlx5_0", "mlx5_10"]),
        ("mlx5_0:1,mlx5_10:2", ["mlx5_0"]),
    ],
)
def test_names_are_read_as_nccl_reads_them(text, chosen):
    there = [adapter(name) for name in ("mlx5_0", "mlx5_1", "mlx5_10")]
    assert [each["name"] for each in there if Choice.read(text).has(each)] == chosen


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ([node()], "no InfiniBand and no RoCE: NCCL uses TCP"),
        ([node(adapter("mlx5_0"))], "mlx5_0:1 InfiniBand 400 Gb/sec ACTIVE"),
        ([node(adapter("mlx5_0", is_usable=False))], "mlx5_0:1 InfiniBand 400 Gb/sec ACTIVE (the pod cannot open it)"),
        ([node(adapter("mlx5_0", state="DOWN"))], "mlx5_0:1 InfiniBand 400 Gb/sec DOWN"),
        ([node(adapter("mlx5_0", **ROCE), NCCL_IB_GID_INDEX="3")], "mlx5_0:1 ens1 Ethernet 400 Gb/sec ACTIVE"),
        ([node(NCCL_IB_HCA="mlx5_0", NCCL_IB_DISABLE="1")], "switched off by NCCL_IB_DISABLE"),
        ([node(adapter("mlx5_0"), NCCL_IB_HCA="^mlx5_9")], "mlx5_0:1 InfiniBand 400 Gb/sec ACTIVE"),
    ],
)
def test_what_nccl_can_use_is_well(nodes, said):
    found = judge_adapters(nodes)
    assert (found.is_well, found.message) == (True, said)


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        (
            [node(adapter("mlx5_0"), NCCL_IB_HCA="mlx5_0,mlx5_3")],
            "a has no mlx5_3, which NCCL_IB_HCA names; it has mlx5_0",
        ),
        ([node(NCCL_IB_HCA="mlx5_0")], "a has no mlx5_0, which NCCL_IB_HCA names; it has none"),
        ([node(adapter("mlx5_0", state="DOWN"), NCCL_IB_HCA="mlx5_0")], "a: mlx5_0:1 is DOWN"),
        (
            [node(adapter("mlx5_0", is_usable=False), NCCL_IB_HCA="mlx5_0")],
            "a: mlx5_0:1 cannot be opened by the pod: add your RDMA device plugin's resource to the pool's resources",
        ),
        (
            [node(adapter("mlx5_0", **ROCE), NCCL_IB_GID_INDEX="5")],
            "a: mlx5_0:1 has no GID 5, which NCCL_IB_GID_INDEX names; it has 0, 3",
        ),
        (
            [node(adapter("mlx5_0", **ROCE), NCCL_IB_GID_INDEX="0")],
            "a: mlx5_0:1 has as GID 0 an address of IB/RoCE v1, which is not routed: choose one of RoCE v2",
        ),
        (
            [node(adapter("mlx5_0")), node(name="b")],
            "a has mlx5_0:1 InfiniBand 400 Gb/sec ACTIVE, b has none",
        ),
    ],
)
def test_what_nccl_would_not_find_is_reported(nodes, said):
    found = judge_adapters(nodes)
    assert (found.is_well, found.message) == (False, said)


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ([node()], "none"),
        ([node(NCCL_P2P_DISABLE="1"), node(NCCL_P2P_DISABLE="1", name="b")], "NCCL_P2P_DISABLE=1"),
        ([node(NCCL_SOCKET_IFNAME="eth0"), node(NCCL_SOCKET_IFNAME="eth1", NCCL_DEBUG="INFO", name="b")], "none"),
    ],
)
def test_nodes_may_differ_in_what_names_their_parts_or_logs(nodes, said):
    assert judge_settings(nodes) == CheckFinding("NCCL settings", True, said)


def test_a_transport_that_is_off_on_one_node_is_reported():
    found = judge_settings([node(NCCL_P2P_DISABLE="1"), node(name="b"), node(name="c")])
    assert not found.is_well
    assert found.message == "NCCL_P2P_DISABLE: a has 1, and 2 of 3 nodes have none"
