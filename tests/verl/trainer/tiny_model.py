"""A model of a few thousand random parameters with its tokenizer, and data: `python tiny_model.py DIRECTORY`."""

import sys
from pathlib import Path

import pandas
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

WORDS = ["<unk>", "<pad>", "<eos>", "user", "assistant", "add", "and", *map(str, range(57))]
CHAT = "{% for message in messages %}{{ message.role + ' ' + message.content + ' ' }}{% endfor %}assistant "


def write_model(directory):
    words = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=words, unk_token="<unk>", pad_token="<pad>", eos_token="<eos>", chat_template=CHAT
    )
    tokenizer.save_pretrained(directory)
    config = LlamaConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=128,
        pad_token_id=1,
        eos_token_id=2,
        bos_token_id=None,
    )
    LlamaForCausalLM(config).save_pretrained(directory)


def write_data(path):
    rows = [
        {
            "data_source": "openai/gsm8k",
            "prompt": [{"role": "user", "content": f"add {number} and {number}"}],
            "ability": "math",
            "reward_model": {"style": "rule", "ground_truth": str(2 * number)},
            "extra_info": {"index": number},
        }
        for number in range(8)
    ]
    pandas.DataFrame(rows).to_parquet(path)


def write(directory: Path):
    write_model(directory / "model")
    write_data(directory / "data.parquet")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
