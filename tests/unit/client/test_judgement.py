"""What is wrong with a pool's nodes: which, what they have, and what the others have."""

import pytest

from tests.unit.client.fake_cluster import FakeCluster, pool
from workergroups.checking.findings import differences, finding
from workergroups.checking.judgement import judge
from workergroups_api.vocabulary import Vendor
from workergroups_client.objects.names import find
from workergroups_client.objects.reading import pool_spec
from workergroups_client.pods.checks import question_about

GIB = 2**30


def required_by(**spec):
    target = find(FakeCluster(pool("ppo", **spec)), "ppo")
    return question_about(target, pool_spec(target), fabric=False)


ASCEND = {
    "vendor": "other",
    "resourceName": "huawei.com/Ascend910",
    "visibleDevicesEnv": "ASCEND_RT_VISIBLE_DEVICES",
}
SPEC = {"nodes": 3, "volumes": [{"mountPath": "/checkpoints"}]}
REQUIRED = required_by(sharedMemory="8Gi", **SPEC)
WELL = {
    "devices": 2,
    "versions": {"driver": "570.1", "torch": "2.9.1", "Ray": "2.60.0", "Python": "3.11.2"},
    "shared_memory": 8 * GIB,
    "unwritable": {},
    "unreachable": {},
    "adapters": [],
    "settings": {},
    "troubles": {},
}
MEASURED = {"backend": "nccl", "processes": 6, "mebibytes": 256, "seconds": 0.01, "bus_bandwidth": 44.7}


def node(name, **different):
    return {"node": name, **WELL, **different}


def answer(*nodes, silent=None, all_reduce=None, not_measured=None):
    return {
        "nodes": list(nodes) or [node("a"), node("b"), node("c")],
        "silent": silent or {},
        "all_reduce": all_reduce,
        "not_measured": not_measured,
    }


def judged(said, required=REQUIRED, fabric=False):
    return {each.subject: each for each in judge({**required, "fabric": fabric}, said)}


def wrong(said, **more):
    return {subject: each.message for subject, each in judged(said, **more).items() if not each.is_well}


def test_what_is_well_is_reported_too():
    found = judged(answer(all_reduce=MEASURED), fabric=True)
    assert {subject: each.message for subject, each in found.items()} == {
        "nodes": "3 of 3 have joined Ray and answer",
        "devices": "2 on each node",
        "driver": "570.1",
        "torch": "2.9.1",
        "Ray": "2.60.0",
        "Python": "3.11.2",
        "/dev/shm": "8 GiB",
        "volumes": "each node can write to /checkpoints",
        "connections": "each node that answers reaches each other one",
        "NCCL settings": "none",
        "adapters": "no InfiniBand and no RoCE: NCCL uses TCP",
        "all-reduce": "44.70 GB/s bus bandwidth (nccl, 6 processes, 256 MiB)",
    }
    assert all(each.is_well for each in found.values())


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (
            answer(node("a"), node("b")),
            {"nodes": "2 of 3 have joined Ray: workergroups status says what the pool waits for"},
        ),
        (
            answer(node("a"), node("b"), silent={"c": "no answer within 60 s"}),
            {"nodes": "c does not answer: no answer within 60 s"},
        ),
        (answer(node("a"), node("b", devices=1), node("c")), {"devices": "b has 1 of 2"}),
        (
            answer(node("a"), node("b", devices=None, troubles={"devices": "nvidia-smi: GPU is lost"}), node("c")),
            {"devices": "b: nvidia-smi: GPU is lost"},
        ),
        (
            answer(node("a"), node("b", versions={**WELL["versions"], "driver": "550.9"}), node("c")),
            {"driver": "b has 550.9, and 2 of 3 nodes have 570.1"},
        ),
        (
            answer(node("a"), node("b", versions={"Ray": "2.60.0", "Python": "3.11.2"}), node("c")),
            {
                "driver": "b has none, and 2 of 3 nodes have 570.1",
                "torch": "b has none, and 2 of 3 nodes have 2.9.1",
            },
        ),
        (
            answer(node("a"), node("b", troubles={"torch": "it cannot be imported: libcudart"}), node("c")),
            {"torch": "b: it cannot be imported: libcudart"},
        ),
        (
            answer(node("a"), node("b", shared_memory=GIB // 2), node("c")),
            {"/dev/shm": "b has 0.5 GiB of 8 GiB: it cannot exceed the memory limit of the pod"},
        ),
        (
            answer(node("a"), node("b", unwritable={"/checkpoints": "Permission denied"}), node("c")),
            {"volumes": "b cannot write to /checkpoints: Permission denied"},
        ),
        (
            answer(node("a"), node("b", unreachable={"c": "timed out"}), node("c")),
            {"connections": "b does not reach c: timed out"},
        ),
    ],
)
def test_what_is_wrong_is_reported_with_the_nodes_name(said, found):
    assert wrong(said) == found


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (answer(not_measured="there is no torch"), {"all-reduce": "not measured: there is no torch"}),
        (answer(all_reduce={**MEASURED, "backend": "gloo"}), {"all-reduce": "torch sees no devices"}),
        (answer(), {}),
    ],
)
def test_an_all_reduce_is_wrong_if_it_fails_or_has_no_devices(said, found):
    told = wrong(said, fabric=True)
    assert told.keys() == found.keys()
    assert all(words in told[subject] for subject, words in found.items())


def test_devices_of_other_vendors_are_not_counted_and_an_all_reduce_may_be_without_them():
    nodes = [node(name, devices=None) for name in "abc"]
    said = answer(*nodes, all_reduce={**MEASURED, "backend": "gloo"})
    found = judged(said, required_by(accelerator=ASCEND, **SPEC), fabric=True)
    assert found["devices"].message == "not counted: the check knows devices of NVIDIA and AMD"
    assert found["devices"].is_well
    assert found["all-reduce"].is_well


def test_without_any_node_only_that_is_reported():
    nobody = {**answer(), "nodes": []}
    assert wrong(nobody).keys() == {"nodes"}
    assert judged(nobody).keys() == {"nodes"}


def test_shared_memory_that_nobody_asked_for_may_differ():
    found = judged(answer(node("a"), node("b", shared_memory=GIB), node("c")), required_by(**SPEC))["/dev/shm"]
    assert (found.is_well, found.message) == (True, "b has 1 GiB, and 2 of 3 nodes have 8 GiB")


def test_of_two_nodes_that_differ_both_are_reported():
    assert list(differences({"a": "1", "b": "2"})) == ["a has 1, b has 2"]
    assert list(differences({"a": "1", "b": None})) == ["a has 1, b has none"]
    assert list(differences({"a": None, "b": None})) == []


def test_of_very_many_the_first_are_reported():
    assert finding("nodes", [str(number) for number in range(20)], "").message == (
        "0; 1; 2; 3; 4; 5; 6; 7; and 12 more"
    )


@pytest.mark.parametrize(
    ("spec", "required"),
    [
        ({"processesPerNode": 2}, (1, 2, Vendor.NVIDIA, 1, "GPU", None, [], True)),
        ({"processesPerNode": 2, "reservation": "None"}, (1, 2, Vendor.NVIDIA, 1, "GPU", None, [], False)),
        (
            {"processesPerNode": 2, "accelerator": {"vendor": "none"}},
            (1, 2, Vendor.NONE, 0, "GPU", None, [], True),
        ),
        (
            {"processesPerNode": 2, "accelerator": ASCEND},
            (1, 2, Vendor.OTHER, 1, "NPU", None, [], True),
        ),
        (
            {"nodes": 4, "processesPerNode": 2, "accelerator": {"vendor": "amd", "perProcess": 4}},
            (4, 2, Vendor.AMD, 4, "GPU", None, [], True),
        ),
        (
            {
                "processesPerNode": 1,
                "volumes": [
                    {"mountPath": "/a"},
                    {"mountPath": "/b", "readOnly": True},
                    {"mountPath": "/c", "pods": "Head"},
                    {"mountPath": "/d", "pods": "Nodes"},
                ],
            },
            (1, 1, Vendor.NVIDIA, 1, "GPU", None, ["/a", "/d"], True),
        ),
    ],
)
def test_a_spec_asks_for_devices_memory_and_directories(spec, required):
    asked = required_by(**spec)
    fields = ("nodes", "processes", "vendor", "devices", "device", "shared_memory", "writable", "is_reserved")
    assert tuple(asked[field] for field in fields) == required
