"""Proximal policy optimization for sequences, as functions of tensors: [responses, tokens] unless they say otherwise.

`mask` is verl's response_mask: 1 for a response's tokens, 0 for what fills the row behind them.
"""

from __future__ import annotations

import torch


def masked_mean(values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return the mean over tokens that count: a scalar."""
    return (values * mask).sum() / mask.sum().clamp(min=1)


def masked_whiten(values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return values with mean 0 and variance 1 over tokens that count; 0 elsewhere."""
    centred = (values - masked_mean(values, mask)) * mask
    return centred * torch.rsqrt(masked_mean(centred**2, mask) + 1e-8)


def token_log_probs(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """Return the log-probability of each token, from logits [responses, tokens, vocabulary]."""
    return logits.log_softmax(-1).gather(-1, tokens.unsqueeze(-1)).squeeze(-1)


def entropy(logits: torch.Tensor) -> torch.Tensor:
    """Return the entropy of each token's distribution, from logits [responses, tokens, vocabulary]."""
    log_probs = logits.log_softmax(-1)
    return -(log_probs.exp() * log_probs).sum(-1)


def apply_kl_penalty(
    scores: torch.Tensor, log_probs: torch.Tensor, ref_log_probs: torch.Tensor, mask: torch.Tensor, coefficient: float
) -> torch.Tensor:
    """Return rewards: the scores, minus a penalty for each token's distance from the reference policy."""
    return (scores - coefficient * (log_probs - ref_log_probs)) * mask


def gae(
    rewards: torch.Tensor, values: torch.Tensor, mask: torch.Tensor, gamma: float, lam: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return advantages and returns by generalized advantage estimation (Schulman et al. 2016).

    A response is an episode: behind its last token there is nothing to gain. The advantages are not whitened yet.
    """
    values = values * mask
    next_values = torch.nn.functional.pad(values[:, 1:], (0, 1))
    errors = (rewards + gamma * next_values - values) * mask
    advantages = torch.zeros_like(errors)
    later = torch.zeros_like(errors[:, 0])
    for token in reversed(range(errors.shape[1])):
        later = errors[:, token] + gamma * lam * later
        advantages[:, token] = later
    return advantages, advantages + values


def policy_loss(
    old_log_probs: torch.Tensor,
    log_probs: torch.Tensor,
    advantages: torch.Tensor,
    mask: torch.Tensor,
    clip_ratio: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the clipped loss of PPO (Schulman et al. 2017), and the fraction of tokens for which it was clipped."""
    ratio = (log_probs - old_log_probs).exp()
    plain = -advantages * ratio
    clipped = -advantages * ratio.clamp(1 - clip_ratio, 1 + clip_ratio)
    return masked_mean(torch.maximum(plain, clipped), mask), masked_mean((clipped > plain).float(), mask)


def value_loss(
    old_values: torch.Tensor, values: torch.Tensor, returns: torch.Tensor, mask: torch.Tensor, clip_range: float
) -> torch.Tensor:
    """Return half the squared error of the values, which gain nothing by moving further than `clip_range`."""
    clipped = old_values + (values - old_values).clamp(-clip_range, clip_range)
    return 0.5 * masked_mean(torch.maximum((values - returns) ** 2, (clipped - returns) ** 2), mask)
