"""The task: write the prompt's digits in reverse, then stop. A rule can check the response."""

from __future__ import annotations

import torch

END = 10  # ends a response, and fills the rest of the row
VOCABULARY = 11  # the digits and END
PROMPT_LENGTH = 4
RESPONSE_LENGTH = PROMPT_LENGTH + 1


def make_prompts(count: int, generator: torch.Generator) -> torch.Tensor:
    """Return random digits: [count, PROMPT_LENGTH]."""
    return torch.randint(END, (count, PROMPT_LENGTH), generator=generator)


def make_response_mask(responses: torch.Tensor) -> torch.Tensor:
    """Return 1 for the tokens of a response, including its first END, and 0 after it."""
    ends = (responses == END).long()
    return (ends.cumsum(-1) == ends).float()


def score(prompts: torch.Tensor, responses: torch.Tensor) -> torch.Tensor:
    """Return the fraction of each response's tokens that are right: 1 only for the solution."""
    solution = torch.nn.functional.pad(prompts.flip(-1), (0, 1), value=END)
    right = (responses == solution) * make_response_mask(responses)
    return right.float().mean(-1)
