"""Judge the answers of a pool's nodes: which of them differ from the spec or from each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from workergroups_api.vocabulary import Vendor

from .answers import AllReduce, Answer, NodeAnswer, Question
from .fabric import judge_adapters, judge_settings
from .findings import CheckFinding, differences, finding

VERSIONS = ("device", "driver", "CUDA", "ROCm", "NCCL", "torch", "Ray", "Python")
_GIB = 2**30
# The size of a file system is rounded to pages.
_TOLERANCE = 64 * 1024


def judge(question: Question, answer: Answer) -> Iterator[CheckFinding]:
    """Yield a finding for each subject of the check, problem or not."""
    yield _nodes(question, answer)
    nodes = answer["nodes"]
    if nodes:
        if question["devices"]:
            yield _devices(question, nodes)
        yield from _versions(nodes)
        yield _shared_memory(question, nodes)
        if question["writable"]:
            yield _volumes(question, nodes)
        if question["nodes"] > 1:
            yield _connections(nodes)
        if question["fabric"]:
            yield judge_settings(nodes)
            yield judge_adapters(nodes)
    if question["fabric"]:
        yield _all_reduce(question, answer["all_reduce"], answer["not_measured"])


def _nodes(question: Question, answer: Answer) -> CheckFinding:
    joined, wanted = len(answer["nodes"]) + len(answer["silent"]), question["nodes"]
    wrong = [f"{node} does not answer: {why}" for node, why in sorted(answer["silent"].items())]
    if joined != wanted:
        wrong.insert(
            0, f"{joined} of {question['nodes']} have joined Ray: workergroups status says what the pool waits for"
        )
    return finding("nodes", wrong, f"{joined} of {question['nodes']} have joined Ray and answer")


def _devices(question: Question, nodes: Sequence[NodeAnswer]) -> CheckFinding:
    wanted = question["devices"] * question["processes"]
    wrong = list(_troubles("devices", nodes)) + [
        f"{each['node']} has {each['devices']} of {wanted}" for each in nodes if each["devices"] not in (None, wanted)
    ]
    if question["vendor"] == Vendor.OTHER:
        return finding("devices", wrong, "not counted: the check knows devices of NVIDIA and AMD")
    return finding("devices", wrong, f"{wanted} on each node")


def _versions(nodes: Sequence[NodeAnswer]) -> Iterator[CheckFinding]:
    for name in VERSIONS:
        found = {each["node"]: each["versions"].get(name) for each in nodes}
        wrong = [*_troubles(name, nodes), *differences(found)]
        if wrong or any(found.values()):
            yield finding(name, wrong, str(next(iter(found.values()))))


def _shared_memory(question: Question, nodes: Sequence[NodeAnswer]) -> CheckFinding:
    sizes, wanted = {each["node"]: each["shared_memory"] for each in nodes}, question["shared_memory"]
    if wanted is None:
        # Nodes with different memory may give different shares of it, so a difference is no problem.
        written = {node: _gib(size) for node, size in sizes.items()}
        return finding("/dev/shm", [], "; ".join(differences(written)) or next(iter(written.values())))
    wrong = [
        f"{node} has {_gib(size)} of {_gib(wanted)}: it cannot exceed the memory limit of the pod"
        for node, size in sizes.items()
        if size < wanted - _TOLERANCE
    ]
    return finding("/dev/shm", wrong, _gib(wanted))


def _volumes(question: Question, nodes: Sequence[NodeAnswer]) -> CheckFinding:
    wrong = [
        f"{each['node']} cannot write to {directory}: {why}"
        for each in nodes
        for directory, why in sorted(each["unwritable"].items())
    ]
    return finding("volumes", wrong, f"each node can write to {', '.join(question['writable'])}")


def _connections(nodes: Sequence[NodeAnswer]) -> CheckFinding:
    wrong = [
        f"{each['node']} does not reach {other}: {why}"
        for each in nodes
        for other, why in sorted(each["unreachable"].items())
    ]
    return finding("connections", wrong, "each node that answers reaches each other one")


def _all_reduce(question: Question, measured: AllReduce | None, why_not: str | None) -> CheckFinding:
    if measured is None:
        wrong = [f"not measured: {why_not}"] if why_not else []
        return finding("all-reduce", wrong, "nothing to measure with one process")
    how = f"{measured['backend']}, {measured['processes']} processes, {measured['mebibytes']} MiB"
    said = f"{measured['bus_bandwidth']:.2f} GB/s bus bandwidth ({how})"
    is_on_devices = question["devices"] and question["vendor"] != Vendor.OTHER
    wrong = [f"{said}: torch sees no devices"] if is_on_devices and measured["backend"] == "gloo" else []
    return finding("all-reduce", wrong, said)


def _troubles(subject: str, nodes: Sequence[NodeAnswer]) -> Iterator[str]:
    return (f"{each['node']}: {each['troubles'][subject]}" for each in nodes if subject in each["troubles"])


def _gib(size: int) -> str:
    return f"{size / _GIB:.3g} GiB"
