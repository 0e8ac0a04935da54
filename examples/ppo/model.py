"""A causal transformer of some ten thousand parameters: small enough to learn on a CPU in seconds."""

from __future__ import annotations

import torch
from task import PROMPT_LENGTH, RESPONSE_LENGTH, VOCABULARY
from torch import nn

WIDTH = 32


class TinyTransformer(nn.Module):
    """Maps tokens [rows, length] to outputs [rows, length, outputs], each from the tokens up to its place."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Parameter(0.1 * torch.randn(PROMPT_LENGTH + RESPONSE_LENGTH, WIDTH))
        self.layer = nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, dropout=0.0, batch_first=True, norm_first=True)
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, outputs)
        # At first, a policy prefers no token, and a critic expects a return of 0.
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        length = tokens.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length, device=tokens.device)
        hidden = self.layer(self.tokens(tokens) + self.positions[:length], src_mask=mask, is_causal=True)
        return self.head(self.norm(hidden))
