"""The four roles of PPO. Ranks of a role are data-parallel: each has the whole model and a chunk of the batch.

Methods that do not block return a future, so that the two pools compute at the same time.
"""

from __future__ import annotations

from collections.abc import Iterator

import algorithms
import torch
from model import TinyTransformer
from task import END, PROMPT_LENGTH, RESPONSE_LENGTH, VOCABULARY, make_response_mask, score
from torch.nn.parallel import DistributedDataParallel

from workergroups import DataProto, Dispatch, Worker, init_process_group, register


class ModelWorker(Worker):
    """A rank with a model of `outputs` for each token, on its own GPU if it has one."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        init_process_group()
        self.outputs = outputs
        self.device = "cuda" if torch.cuda.is_available() else "cpu"

    @register(Dispatch.ONE_TO_ALL)
    def init_model(self, seed: int) -> None:
        """Start over with the same weights on all ranks, since the process may have served another driver."""
        torch.manual_seed(seed)
        self.model = TinyTransformer(self.outputs).to(self.device)

    def outputs_of_response(self, model: torch.nn.Module, data: DataProto) -> torch.Tensor:
        """Return the model's output at each token of the responses, from the tokens before it."""
        sequences = torch.cat([data.batch["prompts"], data.batch["responses"]], dim=-1)
        return model(sequences[:, :-1])[:, PROMPT_LENGTH - 1 :]

    @torch.no_grad()
    def log_probs_of_response(self, data: DataProto) -> torch.Tensor:
        """Return the log-probability of each token of the responses."""
        data = data.to(self.device)
        logits = self.outputs_of_response(self.model, data)
        return algorithms.token_log_probs(logits, data.batch["responses"]).cpu()


class TrainedWorker(ModelWorker):
    """A rank with a model that learns. The gradients are averaged over the ranks."""

    def __init__(self, outputs: int, lr: float, mini_batch_size: int, epochs: int) -> None:
        super().__init__(outputs)
        self.lr = lr
        self.mini_batch_size = mini_batch_size // self.world_size
        self.epochs = epochs

    @register(Dispatch.ONE_TO_ALL)
    def init_model(self, seed: int) -> None:
        super().init_model(seed)
        self.seed = seed
        self.trained = DistributedDataParallel(self.model)
        self.optimizer = torch.optim.Adam(self.model.parameters(), self.lr)

    def mini_batches(self, data: DataProto) -> Iterator[DataProto]:
        """Yield this rank's part of each mini-batch, in another order in each epoch."""
        return data.to(self.device).make_iterator(self.mini_batch_size, self.epochs, self.seed, {"shuffle": True})

    def descend(self, loss: torch.Tensor) -> None:
        """Take one step of the optimizer, the same one on all ranks."""
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()


class Actor(TrainedWorker):
    """The policy that is trained; it also writes the responses (the rollout)."""

    def __init__(
        self,
        lr: float = 5e-3,
        mini_batch_size: int = 128,
        epochs: int = 4,
        clip_ratio: float = 0.2,
        entropy_coefficient: float = 0.01,
    ) -> None:
        super().__init__(VOCABULARY, lr, mini_batch_size, epochs)
        self.clip_ratio = clip_ratio
        self.entropy_coefficient = entropy_coefficient

    @register(Dispatch.ONE_TO_ALL)
    def init_model(self, seed: int) -> None:
        super().init_model(seed)
        # So that each rank writes different responses.
        self.sampling = torch.Generator(self.device).manual_seed(seed * self.world_size + self.rank)

    @register(Dispatch.DP_COMPUTE_PROTO)
    @torch.no_grad()
    def generate_sequences(self, data: DataProto) -> DataProto:
        """Return responses to the prompts, generated token by token."""
        tokens = data.batch["prompts"].to(self.device)
        for _ in range(RESPONSE_LENGTH):
            probabilities = self.model(tokens)[:, -1].softmax(-1)
            tokens = torch.cat([tokens, torch.multinomial(probabilities, 1, generator=self.sampling)], dim=-1)
        responses = tokens[:, PROMPT_LENGTH:].cpu()
        mask = make_response_mask(responses)
        return DataProto.from_dict({"responses": responses.where(mask > 0, END), "response_mask": mask})

    @register(Dispatch.DP_COMPUTE_PROTO)
    def compute_log_prob(self, data: DataProto) -> DataProto:
        """Return log-probabilities by the policy that wrote the responses."""
        return DataProto.from_dict({"old_log_probs": self.log_probs_of_response(data)})

    @register(Dispatch.DP_COMPUTE_PROTO)
    def update_actor(self, data: DataProto) -> DataProto:
        """Train for some epochs with the clipped policy gradient; return metrics of the last mini-batch."""
        for part in self.mini_batches(data):
            batch = part.batch
            logits = self.outputs_of_response(self.trained, part)
            log_probs = algorithms.token_log_probs(logits, batch["responses"])
            loss, clipped = algorithms.policy_loss(
                batch["old_log_probs"], log_probs, batch["advantages"], batch["response_mask"], self.clip_ratio
            )
            entropy = algorithms.masked_mean(algorithms.entropy(logits), batch["response_mask"])
            self.descend(loss - self.entropy_coefficient * entropy)
        metrics = {"actor/loss": loss, "actor/clipped": clipped, "actor/entropy": entropy}
        return DataProto(meta_info={"metrics": {name: value.item() for name, value in metrics.items()}})


class Reference(ModelWorker):
    """The policy as it was at first."""

    def __init__(self) -> None:
        super().__init__(VOCABULARY)

    @register(Dispatch.DP_COMPUTE_PROTO, blocking=False)
    def compute_ref_log_prob(self, data: DataProto) -> DataProto:
        """Return log-probabilities by the policy as it was at first."""
        return DataProto.from_dict({"ref_log_prob": self.log_probs_of_response(data)})


class Critic(TrainedWorker):
    """The critic: it predicts the return of a response at each of its tokens."""

    def __init__(self, lr: float = 5e-3, mini_batch_size: int = 128, epochs: int = 4, clip_range: float = 0.5) -> None:
        super().__init__(1, lr, mini_batch_size, epochs)
        self.clip_range = clip_range

    @register(Dispatch.DP_COMPUTE_PROTO, blocking=False)
    @torch.no_grad()
    def compute_values(self, data: DataProto) -> DataProto:
        """Return the value at each token of the responses."""
        values = self.outputs_of_response(self.model, data.to(self.device)).squeeze(-1)
        return DataProto.from_dict({"values": values.cpu()})

    @register(Dispatch.DP_COMPUTE_PROTO, blocking=False)
    def update_critic(self, data: DataProto) -> DataProto:
        """Train for some epochs by regression on the returns; return metrics of the last mini-batch."""
        for part in self.mini_batches(data):
            batch = part.batch
            values = self.outputs_of_response(self.trained, part).squeeze(-1)
            loss = algorithms.value_loss(
                batch["values"], values, batch["returns"], batch["response_mask"], self.clip_range
            )
            self.descend(loss)
        return DataProto(meta_info={"metrics": {"critic/loss": loss.item()}})


class Reward(Worker):
    """A reward by a rule, without a model."""

    @register(Dispatch.DP_COMPUTE_PROTO, blocking=False)
    def compute_reward(self, data: DataProto) -> DataProto:
        """Return the score of each response, at its last token."""
        mask = data.batch["response_mask"]
        scores = torch.zeros_like(mask)
        last = mask.sum(-1, keepdim=True).long() - 1
        scores.scatter_(-1, last, score(data.batch["prompts"], data.batch["responses"]).unsqueeze(-1))
        return DataProto.from_dict({"token_level_scores": scores})
