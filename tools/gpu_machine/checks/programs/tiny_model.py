"""A small Llama with random weights, its tokenizer of words, prompts, and a reward for saying 7: `DIRECTORY`."""

import sys
from pathlib import Path

import pandas
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

WORDS = ["<unk>", "<pad>", "<eos>", "user", "assistant", "please", "say", *map(str, range(57))]
CHAT = "{% for message in messages %}{{ message.role + ' ' + message.content + ' ' }}{% endfor %}assistant "
REWARD = """
def compute_score(data_source, solution_str, ground_truth, extra_info=None, **more):
    return sum(word == "7" for word in solution_str.split()) / 16
"""

directory = Path(sys.argv[1])
words = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="<unk>"))
words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
PreTrainedTokenizerFast(
    tokenizer_object=words, unk_token="<unk>", pad_token="<pad>", eos_token="<eos>", chat_template=CHAT
).save_pretrained(directory / "model")
# vLLM's kernels need heads of 64 numbers.
config = LlamaConfig(
    vocab_size=len(WORDS),
    hidden_size=256,
    intermediate_size=512,
    num_hidden_layers=4,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=256,
    pad_token_id=1,
    eos_token_id=2,
    bos_token_id=None,
    tie_word_embeddings=False,
)
LlamaForCausalLM(config).bfloat16().save_pretrained(directory / "model")
rows = [
    {
        "data_source": "numbers",
        "prompt": [{"role": "user", "content": f"please say {number}"}],
        "ability": "numbers",
        "reward_model": {"style": "rule", "ground_truth": str(number)},
        "extra_info": {"index": number},
    }
    for number in list(range(50)) * 8
]
pandas.DataFrame(rows).to_parquet(directory / "data.parquet")
(directory / "reward.py").write_text(REWARD)
print("written")
