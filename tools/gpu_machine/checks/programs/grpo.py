"""Ranks of GRPO: the policy and its reference by FSDP2, and a rollout whose vLLM runs in the rank's own process."""

import os
import socket

import torch
from torch.distributed import checkpoint
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard
from transformers import AutoModelForCausalLM

import workergroups
from workergroups import DataProto, Dispatch, Weights, Worker, register
from workergroups.single_controller.base.decorator import make_nd_compute_dataproto_dispatch_fn

DIRECTORY = "/data"
TOKENS = 16  # of a response
CLIP = 0.2
KL_COEFFICIENT = 0.001


class Rank(Worker):
    """A rank that says where it is, so that somebody can kill it."""

    @register(Dispatch.ONE_TO_ALL)
    def where(self) -> str:
        """Return the pod and the process."""
        return f"{socket.gethostname()}/{os.getpid()}"


class Reference(Rank):
    """The model as it was at first, one part of it on each rank."""

    def __init__(self) -> None:
        super().__init__()
        workergroups.init_process_group()
        self.model = AutoModelForCausalLM.from_pretrained(f"{DIRECTORY}/model", dtype=torch.float32).cuda()
        for layer in self.model.model.layers:
            fully_shard(layer)
        fully_shard(self.model)

    def log_probs(self, batch: DataProto) -> torch.Tensor:
        """Return the log-probability of each token of the responses: [rows, TOKENS]."""
        tokens = torch.cat([batch.batch["prompts"], batch.batch["responses"]], dim=-1).cuda()
        logits = self.model(tokens).logits[:, -TOKENS - 1 : -1]
        return logits.log_softmax(-1).gather(-1, tokens[:, -TOKENS:, None]).squeeze(-1)

    @register(Dispatch.DP_COMPUTE_PROTO)
    @torch.no_grad()
    def reference_log_probs(self, batch: DataProto) -> DataProto:
        """Return those of the model as it was at first."""
        return DataProto.from_dict({"reference": self.log_probs(batch)})


class Actor(Reference):
    """The policy that learns."""

    def __init__(self, lr: float) -> None:
        super().__init__()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr)
        self.weights = Weights("policy")

    @register(Dispatch.DP_COMPUTE_PROTO)
    @torch.no_grad()
    def old_log_probs(self, batch: DataProto) -> DataProto:
        """Return those of the policy before its update."""
        return DataProto.from_dict({"old": self.log_probs(batch)})

    @register(Dispatch.DP_COMPUTE_METRIC)
    def update(self, batch: DataProto) -> float:
        """Take one step along the clipped policy gradient; return the loss."""
        old, reference, advantages = (batch.batch[name].cuda() for name in ("old", "reference", "advantages"))
        log_probs = self.log_probs(batch)
        ratio = (log_probs - old).exp()
        gain = torch.minimum(ratio * advantages, ratio.clamp(1 - CLIP, 1 + CLIP) * advantages)
        away = (reference - log_probs).exp() - (reference - log_probs) - 1
        loss = (KL_COEFFICIENT * away - gain).mean()
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss.item()

    @register(Dispatch.ONE_TO_ALL)
    def publish(self, version: int):
        """Let the rollout read the weights."""
        return self.weights.publish(self.model.state_dict(), dtype=torch.bfloat16, version=version)

    @register(Dispatch.ONE_TO_ALL)
    def save(self, step: int) -> None:
        """Write a checkpoint."""
        checkpoint.save(self._state(), checkpoint_id=f"{DIRECTORY}/grpo/{step}")

    @register(Dispatch.ONE_TO_ALL)
    def restore(self, step: int) -> None:
        """Read a checkpoint."""
        state = self._state()
        checkpoint.load(state, checkpoint_id=f"{DIRECTORY}/grpo/{step}")
        set_state_dict(self.model, self.optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])

    def _state(self):
        return dict(zip(("model", "optimizer"), get_state_dict(self.model, self.optimizer), strict=True))


class Rollout(Rank):
    """Writes the responses: all ranks together, each with its part of the model, by tensor parallelism.

    Its engine starts with random weights: it has only what the policy hands over.
    """

    def __init__(self) -> None:
        super().__init__()
        self._register_dispatch_collect_info("rollout", dp_rank=0, is_collect=self.rank == 0)
        os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"  # so that the engine's model is in this process
        from vllm import LLM, SamplingParams

        self.engine = LLM(
            f"{DIRECTORY}/model",
            load_format="dummy",
            dtype="bfloat16",
            seed=0,
            tensor_parallel_size=self.world_size,
            distributed_executor_backend="external_launcher",  # the ranks are there, and have torchrun's variables
            disable_custom_all_reduce=True,  # a rank does not see the other ranks' devices
            max_model_len=64,
            gpu_memory_utilization=0.3,
        )
        self.sampling = SamplingParams(temperature=1.0, max_tokens=TOKENS, ignore_eos=True, logprobs=0)
        self.weights = Weights("policy")

    @register(Dispatch.ONE_TO_ALL)
    def receive(self, published):
        """Read the policy's weights into the engine; return their passport."""
        self.engine.apply_model(lambda model: model.load_weights(self.weights.stream(published)))
        self.engine.reset_prefix_cache()
        return self.weights.passport

    @register(dispatch_mode=make_nd_compute_dataproto_dispatch_fn(mesh_name="rollout"))
    def generate(self, batch: DataProto) -> DataProto:
        """Return a response to each prompt, and the engine's log-probability of each of its tokens."""
        asked = [{"prompt_token_ids": row} for row in batch.batch["prompts"].tolist()]
        written = [each.outputs[0] for each in self.engine.generate(asked, self.sampling, use_tqdm=False)]
        known = [
            [at[token].logprob for token, at in zip(each.token_ids, each.logprobs, strict=True)] for each in written
        ]
        responses = torch.tensor([list(each.token_ids) for each in written])
        return DataProto.from_dict({"responses": responses, "engine": torch.tensor(known)})
