"""What examples/ppo computes: PPO's formulas on small numbers, and the score of its task."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from examples.ppo import algorithms
from examples.ppo.task import END, make_prompts, make_response_mask, score

# Two responses, the second with one token less.
MASK = torch.tensor([[1.0, 1.0, 1.0], [1.0, 1.0, 0.0]])
REWARDS = torch.tensor([[0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])
VALUES = torch.tensor([[0.5, 0.25, 0.75], [0.5, -0.5, 9.0]])


def test_without_lambda_advantages_are_the_errors_of_a_step():
    advantages, returns = algorithms.gae(REWARDS, VALUES, MASK, gamma=0.5, lam=0.0)
    assert_close(advantages, torch.tensor([[0.125 - 0.5, 0.375 - 0.25, 0.25], [-0.25 - 0.5, -0.5, 0.0]]))
    assert_close(returns, torch.tensor([[0.125, 0.375, 1.0], [-0.25, -1.0, 0.0]]))


def test_with_lambda_1_returns_are_the_rewards_to_go():
    advantages, returns = algorithms.gae(REWARDS, VALUES, MASK, gamma=1.0, lam=1.0)
    assert_close(returns, torch.tensor([[1.0, 1.0, 1.0], [-1.0, -1.0, 0.0]]))
    assert_close(advantages, returns - VALUES * MASK)


def test_between_them_errors_count_less_the_later_they_are():
    errors, _ = algorithms.gae(REWARDS, VALUES, MASK, gamma=0.9, lam=0.0)
    advantages, _ = algorithms.gae(REWARDS, VALUES, MASK, gamma=0.9, lam=0.8)
    decay = 0.9 * 0.8
    assert_close(advantages[:, 0], errors[:, 0] + decay * errors[:, 1] + decay**2 * errors[:, 2])


def test_what_fills_a_row_changes_nothing():
    filled = [torch.nn.functional.pad(tensor, (0, 2), value=7.0) for tensor in (REWARDS, VALUES)]
    mask = torch.nn.functional.pad(MASK, (0, 2))
    longer, _ = algorithms.gae(*filled, mask, gamma=0.9, lam=0.8)
    advantages, _ = algorithms.gae(REWARDS, VALUES, MASK, gamma=0.9, lam=0.8)
    assert_close(longer[:, :3], advantages)
    assert not longer[:, 3:].any()
    assert_close(algorithms.masked_mean(filled[1], mask), torch.tensor((0.5 + 0.25 + 0.75 + 0.5 - 0.5) / 5))


def test_whitened_advantages_have_mean_0_and_variance_1():
    whitened = algorithms.masked_whiten(VALUES, MASK)
    assert_close(algorithms.masked_mean(whitened, MASK), torch.tensor(0.0))
    assert_close(algorithms.masked_mean(whitened**2, MASK), torch.tensor(1.0))
    assert whitened[1, 2] == 0


def test_log_probabilities_and_entropy_are_those_of_the_distribution():
    logits = torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(0))
    tokens = torch.tensor([[0, 1, 2], [3, 4, 0]])
    known = torch.distributions.Categorical(logits=logits)
    assert_close(algorithms.token_log_probs(logits, tokens), known.log_prob(tokens))
    assert_close(algorithms.entropy(logits), known.entropy())


def test_tokens_that_the_reference_finds_less_likely_cost_something():
    log_probs = torch.log(torch.tensor([[0.5, 0.5, 0.5], [0.5, 0.5, 0.5]]))
    reference = torch.log(torch.tensor([[0.5, 0.25, 0.5], [0.5, 0.5, 0.1]]))
    rewards = algorithms.apply_kl_penalty(REWARDS, log_probs, reference, MASK, coefficient=0.1)
    price = 0.1 * torch.log(torch.tensor(2.0))
    assert_close(rewards, REWARDS - torch.tensor([[0.0, price, 0.0], [0.0, 0.0, 0.0]]))


@pytest.mark.parametrize(
    ("ratio", "advantage", "clipped"),
    [(1.5, 1.0, True), (0.5, -1.0, True), (1.5, -1.0, False), (0.5, 1.0, False), (1.1, 1.0, False)],
)
def test_a_policy_gains_nothing_by_moving_further_than_the_clip_ratio(ratio, advantage, clipped):
    log_probs = torch.tensor([[ratio]]).log().requires_grad_()
    once = torch.ones(1, 1)
    loss, part = algorithms.policy_loss(torch.zeros(1, 1), log_probs, advantage * once, once, clip_ratio=0.2)
    loss.backward()
    assert part == clipped
    assert_close(log_probs.grad.item(), 0.0 if clipped else -advantage * ratio)


def test_values_gain_nothing_by_moving_further_than_the_clip_range():
    once = torch.ones(1, 1)
    for moved, expected in ((0.3, -0.7), (0.8, 0.0)):
        values = torch.full((1, 1), moved, requires_grad=True)
        algorithms.value_loss(torch.zeros(1, 1), values, once, once, clip_range=0.5).backward()
        assert_close(values.grad.item(), expected)


def test_a_response_is_scored_up_to_its_end():
    prompts = torch.tensor([[1, 2, 3, 4]] * 4)
    responses = torch.tensor([[4, 3, 2, 1, END], [4, 3, 2, 1, 0], [4, END, 2, 1, END], [END, 3, 2, 1, END]])
    assert_close(make_response_mask(responses)[2:], torch.tensor([[1.0, 1, 0, 0, 0], [1.0, 0, 0, 0, 0]]))
    assert_close(score(prompts, responses), torch.tensor([1.0, 0.8, 0.2, 0.0]))


def test_prompts_are_those_of_the_seed():
    one, same, other = (make_prompts(8, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert one.shape == (8, 4)
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
