"""The class of the ranks: sums over NCCL, and every fault that a method can have. It runs in the pods."""

import ctypes
import gc
import os
import signal
import socket
import subprocess
import sys
import time
from typing import Any

import torch
import torch.distributed as dist

import workergroups
from workergroups import DataProto, Dispatch, Worker, register
from workergroups.single_controller.base.decorator import make_nd_compute_dataproto_dispatch_fn

FILE = "/tmp/replica.pt"
HOLD = """
import torch
held = torch.empty(8 << 30, dtype=torch.uint8, device="cuda")
print("holds it", flush=True)
import time; time.sleep(600)
"""


def _referrers(of: Any, known: list[Any]) -> str:
    """Return what refers to an object, what refers to that, and so on."""
    names = []
    for _ in range(6):
        own = {"_referrers", "Rank.large_tensors", "Rank.large_tensors.<locals>.<listcomp>"}
        of = [each for each in gc.get_referrers(of) if each is not known]
        of = next((each for each in of if getattr(getattr(each, "f_code", None), "co_qualname", "") not in own), None)
        code = getattr(of, "f_code", None)
        names.append(type(of).__name__ if code is None else f"frame of {code.co_qualname}")
    return " < ".join(names)


class Rank(Worker):
    """One rank with a tensor on its device. Faults happen on the last rank."""

    def __init__(self) -> None:
        super().__init__()
        self.x = torch.ones(1 << 20, device="cuda")
        self._register_dispatch_collect_info("reversed", self.world_size - 1 - self.rank, is_collect=True)

    @register(Dispatch.ONE_TO_ALL)
    def look(self) -> dict[str, Any]:
        """Return the process, its device, and which device files its container has."""
        device = torch.cuda.get_device_properties(0)
        files = sorted(name for name in os.listdir("/dev") if name.startswith("nvidia"))
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        where = {"pod": socket.gethostname(), "pid": os.getpid()}
        return {**where, "visible": visible, "uuid": str(device.uuid), "name": device.name, "files": files}

    @register(Dispatch.ONE_TO_ALL)
    def hold(self, gib: int) -> None:
        """Fill a part of the device with numbers."""
        self.numbers = torch.empty(gib << 27, dtype=torch.int64, device="cuda")
        for part in self.numbers.split(1 << 27):
            part.random_(generator=torch.Generator("cuda").manual_seed(self.rank))

    @register(Dispatch.ONE_TO_ALL)
    def held(self) -> tuple[int, int]:
        """Return this process and the checksum of what it holds."""
        return os.getpid(), sum(int(part.sum()) for part in self.numbers.split(1 << 27))

    @register(Dispatch.ONE_TO_ALL)
    def total(self) -> float:
        """Sum up over all ranks: 1 + 2 + ..."""
        if not dist.is_initialized():
            workergroups.init_process_group()
        self.x.fill_(self.rank + 1)
        dist.all_reduce(self.x)
        torch.cuda.synchronize()
        return float(self.x[0])

    @register(Dispatch.ONE_TO_ALL)
    def speed(self) -> str:
        """Measure the all-reduce of 1 GiB."""
        big = torch.ones(1 << 28, device="cuda")
        dist.all_reduce(big)
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(5):
            dist.all_reduce(big)
        torch.cuda.synchronize()
        rate = 5 * big.numel() * big.element_size() / (time.perf_counter() - began)
        return f"{rate / 1e9:.0f} GB/s, {dist.get_backend()}"

    @register(Dispatch.DP_COMPUTE_PROTO)
    def make_batch(self, rows: DataProto) -> DataProto:
        """Return 64 MiB for each row, on the device: its number, again and again."""
        numbers = rows.batch["row"].cuda().view(-1, 1)
        return DataProto.from_dict({"numbers": numbers.expand(-1, 1 << 23).contiguous()})

    @register(Dispatch.DP_COMPUTE_METRIC)
    def sum_batch(self, batch: DataProto) -> tuple[str, int]:
        """Return on which device the rows are, and their sum."""
        numbers = batch.batch["numbers"]
        return str(numbers.device), int(numbers.sum())

    @register(dispatch_mode=make_nd_compute_dataproto_dispatch_fn(mesh_name="reversed"))
    def sum_rows(self, batch: DataProto) -> DataProto:
        """Return the sum of each row; the first rows go to the last rank."""
        return DataProto.from_dict({"sum": batch.batch["numbers"].sum(-1).cpu()})

    @register(Dispatch.ONE_TO_ALL, blocking=False)
    def capture(self, seconds: float) -> int:
        """Capture and replay CUDA graphs for some seconds; return how many were right."""
        until, right = time.monotonic() + seconds, 0
        # One for all, since torch keeps what each graph had for itself; it is gone with the last of them.
        pool, previous = torch.cuda.graph_pool_handle(), None
        while time.monotonic() < until:
            graph = torch.cuda.CUDAGraph()
            self.x.fill_(1)
            with torch.cuda.graph(graph, pool=pool):
                doubled = self.x * 2
                time.sleep(0.02)
            graph.replay()
            right += int(doubled.sum()) == 2 * self.x.numel()
            previous = graph
        del previous
        return right

    @register(Dispatch.ONE_TO_ALL)
    def large_tensors(self) -> list[str]:
        """Return what refers to the tensors of 64 MiB and more, and how much torch counts, also without cycles."""
        large = [each for each in gc.get_objects() if isinstance(each, torch.Tensor) and each.nbytes >= 1 << 26]
        found = [f"{tuple(tensor.shape)} {tensor.device}: {_referrers(tensor, large)}" for tensor in large]
        large.clear()
        before = torch.cuda.memory_allocated()
        return [
            *found,
            f"{before >> 20} MiB, after {gc.collect()} were collected {torch.cuda.memory_allocated() >> 20}",
        ]

    @register(Dispatch.ONE_TO_ALL)
    def compute(self, seconds: float) -> float:
        """Keep the device busy for some seconds; return for how many it was."""
        square = torch.ones(1 << 13, 1 << 13, device="cuda")
        began = time.perf_counter()
        while time.perf_counter() - began < seconds:
            for _ in range(10):
                square @ square
            torch.cuda.synchronize()
        return time.perf_counter() - began

    @register(Dispatch.ONE_TO_ALL)
    def hang(self) -> float:
        """The last rank leaves the others alone in an all-reduce."""
        if self.rank == self.world_size - 1:
            time.sleep(600)
        return self.total()

    @register(Dispatch.ONE_TO_ALL)
    def long_sum(self) -> float:
        """Be in collectives for minutes, so that somebody can kill a rank meanwhile."""
        for _ in range(2_000_000):
            dist.all_reduce(self.x)
            self.x /= 2
        torch.cuda.synchronize()
        return float(self.x[0])

    @register(Dispatch.ONE_TO_ALL)
    def out_of_memory(self) -> int:
        """The last rank asks for a tebibyte."""
        if self.rank == self.world_size - 1:
            self.big = torch.empty(1 << 40, dtype=torch.uint8, device="cuda")
        return int(torch.cuda.memory_allocated())

    @register(Dispatch.ONE_TO_ALL)
    def allocate(self, gib: int) -> int:
        """Each rank asks for memory, and gives it back."""
        torch.empty(gib << 30, dtype=torch.uint8, device="cuda")
        torch.cuda.empty_cache()
        return gib

    @register(Dispatch.ONE_TO_ALL)
    def leave_child(self) -> None:
        """The last rank is killed while a process that it has started holds memory of the device."""
        self._leave(own_session=False)

    @register(Dispatch.ONE_TO_ALL)
    def leave_daemon(self) -> None:
        """The same, and the process has a session of its own."""
        self._leave(own_session=True)

    def _leave(self, *, own_session: bool) -> None:
        if self.rank == self.world_size - 1:
            command = [sys.executable, "-c", HOLD]
            child = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=own_session)
            assert child.stdout is not None
            child.stdout.readline()
            os.kill(os.getpid(), signal.SIGKILL)

    @register(Dispatch.ONE_TO_ALL)
    def illegal_access(self) -> float:
        """The last rank writes to memory that the driver has taken back behind torch's back."""
        if self.rank == self.world_size - 1:
            lost = torch.zeros(1 << 26, device="cuda")
            torch.cuda.synchronize()
            ctypes.CDLL("libcuda.so.1").cuMemFree_v2(ctypes.c_uint64(lost.data_ptr()))
            lost.fill_(1.0)
            torch.cuda.synchronize()
        return float((self.x + 1)[0])

    @register(Dispatch.ONE_TO_ALL)
    def device_assert(self) -> float:
        """The last rank reads an element that does not exist."""
        if self.rank == self.world_size - 1:
            self.x[torch.tensor([1 << 40], device="cuda")]
            torch.cuda.synchronize()
        return float((self.x + 1)[0])

    @register(Dispatch.ONE_TO_ALL)
    def exit_at_once(self) -> None:
        """The last rank ends its process without a word."""
        if self.rank == self.world_size - 1:
            os._exit(7)


class Big(Rank):
    """A rank with 8 GiB of bf16 weights."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(
            torch.nn.Linear(1 << 14, 1 << 14, bias=False, dtype=torch.bfloat16, device="cuda") for _ in range(16)
        )

    @register(Dispatch.ONE_TO_ALL)
    def gib(self) -> float:
        """Return how large the weights are."""
        return sum(each.numel() * each.element_size() for each in self.layers.parameters()) / (1 << 30)


class Replica(Rank):
    """A rank with some GiB of bf16 weights: those of its peers, or of a file in the pod."""

    def __init__(self, gib: int) -> None:
        super().__init__()
        self.tensors = {
            f"layer{at}": torch.empty(1 << 14, 1 << 14, dtype=torch.bfloat16, device="cuda") for at in range(2 * gib)
        }
        began = time.perf_counter()
        self.weights = workergroups.Weights("policy")
        passport = self.weights.receive_from_peers(self.tensors)
        self.came_from = "nowhere" if passport is None else "peers"
        if passport is None and os.path.exists(FILE):
            self._load()
            self.came_from = "file"
        torch.cuda.synchronize()
        self.took = time.perf_counter() - began

    def _load(self) -> None:
        for name, value in torch.load(FILE, mmap=True).items():
            self.tensors[name].copy_(value)
        self.weights.publish(self.tensors, version=1)

    @register(Dispatch.ONE_TO_ALL)
    def begin(self) -> None:
        """Fill the weights with numbers, the same on all ranks, and let peers have them."""
        for tensor in self.tensors.values():
            tensor.normal_(generator=torch.Generator("cuda").manual_seed(0))
        self.weights.publish(self.tensors, version=1)

    @register(Dispatch.ONE_TO_ALL)
    def save(self) -> None:
        """Write a file in each pod, and let no peer have the weights any more."""
        if os.environ["RAY_LOCAL_RANK"] == "0":
            torch.save(self.tensors, FILE)
        self.weights.close()

    @register(Dispatch.ONE_TO_ALL)
    def origin(self) -> tuple[str, float, Any]:
        """Return where the weights came from, in how many seconds, and which they are."""
        return self.came_from, self.took, self.weights.passport
