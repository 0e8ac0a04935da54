"""Two models, each trained on its half of one machine: two groups on disjoint bundles of one placement group."""

from __future__ import annotations

import argparse
from itertools import pairwise

import ray
import torch

from workergroups import (
    RayClassWithInitArgs,
    RayResourcePool,
    RayWorkerGroup,
    Worker,
    init_process_group,
    split_resource_pool,
)


class Trainer(Worker):
    """One rank: a copy of the model on the rank's own device, or on the CPU."""

    def __init__(self, widths: list[int]) -> None:
        super().__init__()
        init_process_group()
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        torch.manual_seed(42)
        layers = [torch.nn.Linear(*sizes) for sizes in pairwise(widths)]
        self.model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers).to(self.device))

    def train_step(self, data: torch.Tensor) -> float:
        """Return the loss on this rank's part of the data; afterwards, all ranks have the same gradients."""
        loss = self.model(data.to(self.device)).sum()
        loss.backward()
        return loss.item()

    def gradient(self) -> torch.Tensor:
        """Return the gradient of the first parameter."""
        return next(self.model.parameters()).grad.cpu()


def train(group: RayWorkerGroup, data: torch.Tensor) -> None:
    """Run one step of a group, each rank on its chunk, and print whether the ranks have equal gradients."""
    losses = group.execute_all_sync("train_step", list(data.chunk(group.world_size)))
    gradients = group.execute_all_sync("gradient")
    equal = all(torch.allclose(gradients[0], other) for other in gradients[1:])
    print(f"losses {[round(loss, 3) for loss in losses]}, gradients are {'equal' if equal else 'different'}")


def main() -> None:
    """Reserve the processes, split them, and train a model on each half."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=4, help="in all; on GPUs, one each")
    processes = parser.parse_args().processes
    use_gpu = torch.cuda.device_count() >= processes
    ray.init(address="local", num_cpus=max(processes, 4))
    with RayResourcePool([processes], use_gpu=use_gpu, max_colocate_count=1) as pool:
        first, second = split_resource_pool(pool, processes // 2)
        train(RayWorkerGroup(first, RayClassWithInitArgs(Trainer, [1024, 64])), torch.randn(4, 128, 1024))
        train(RayWorkerGroup(second, RayClassWithInitArgs(Trainer, [512, 512, 8])), torch.randn(4, 512))


if __name__ == "__main__":
    main()
