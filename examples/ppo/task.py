"""The task: write the prompt's digits in reverse, then stop. Whether a response is right can be checked."""

from __future__ import annotations

import torch

END = 10  # ends a response, and fills the row behind it
VOCABULARY = 11  # the digits and END
PROMPT_LENGTH = 4
RESPONSE_LENGTH = PROMPT_LENGTH + 1


def make_prompts(count: int, generator: torch.Generator) -> torch.Tensor:
    """Random digits: [count, PROMPT_LENGTH]."""
    return torch.randint(END, (count, PROMPT_LENGTH), generator=generator)


def make_response_mask(responses: torch.Tensor) -> torch.Tensor:
    """1 for the tokens of a response, its first END included, and 0 behind it."""
    ends = (responses == END).long()
    return (ends.cumsum(-1) == ends).float()


def score(prompts: torch.Tensor, responses: torch.Tensor) -> torch.Tensor:
    """For which part of its tokens each response is right: 1 for the solution, and for nothing else."""
    solution = torch.nn.functional.pad(prompts.flip(-1), (0, 1), value=END)
    right = (responses == solution) * make_response_mask(responses)
    return right.float().mean(-1)
