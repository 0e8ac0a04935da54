"""A stand-in for the inference engine, `rollout.name=random`: named in VERL_USE_EXTERNAL_MODULES.

It answers with random tokens. Weights come to it as to a real one, and each of verl's ranks prints where it runs.
"""

import asyncio
import random

import ray
import torch
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
from verl.workers.rollout import base
from verl.workers.rollout.replica import RolloutReplica, RolloutReplicaRegistry, TokenOutput

TOKENS = 32
VOCABULARY = range(3, 60)


class Server:
    """One for each replica, on the node of its first rank, without resources, as vLLM's."""

    global_steps = None

    async def set_global_steps(self, global_steps):
        self.global_steps = global_steps

    async def generate(self, prompt_ids, sampling_params, request_id, **more):
        tokens = random.choices(VOCABULARY, k=random.randint(1, min(TOKENS, sampling_params.get("max_tokens", TOKENS))))
        return TokenOutput(
            token_ids=tokens,
            log_probs=[-4.0] * len(tokens),
            stop_reason="completed",
            extra_fields={"global_steps": self.global_steps},
        )

    async def nothing(self, *args, **kwargs):
        """There is no memory to free, and nothing to stop."""

    wake_up = sleep = clear_kv_cache = release_kv_cache = resume_kv_cache = nothing
    abort_all_requests = resume_generation = start_profile = stop_profile = nothing


def node_of(worker):
    return ray.get_runtime_context().get_node_id()


def name_of(replica):
    return f"random-engine-{replica}"


class Replica(RolloutReplica):
    async def launch_servers(self):
        nodes = await asyncio.gather(*(worker.__ray_call__.remote(node_of) for worker in self.workers))
        strategy = NodeAffinitySchedulingStrategy(nodes[0], soft=False)
        self._server_address = name_of(self.replica_rank)
        options = {"name": self._server_address, "scheduling_strategy": strategy, "num_cpus": 0}
        self._server_handle = ray.remote(Server).options(**options).remote()
        self.servers = [self._server_handle]


class ServerAdapter(base.BaseRollout):
    """The engine's end in verl's ranks."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        context = ray.get_runtime_context()
        bundle = ray.util.get_current_placement_group()
        device = context.get_accelerator_ids()["GPU"][0]
        print(f"verl's rank is in placement group {bundle.id.hex()} on node {context.get_node_id()}, device {device}")

    async def resume(self, tags):
        pass

    async def release(self):
        pass

    async def update_weights(self, weights, wire_format="named_tensors", global_steps=None, **kwargs):
        count = sum(tensor.numel() for _, tensor in weights)
        print(f"weights of step {global_steps}: {count} numbers")
        # A replica is one rank.
        server = ray.get_actor(name_of(torch.distributed.get_rank()))
        await server.set_global_steps.remote(global_steps)


RolloutReplicaRegistry.register("random", lambda: Replica)
# verl has no function for this.
base._ROLLOUT_REGISTRY["random", "async"] = f"{__name__}.ServerAdapter"
