#!/bin/sh
# Download data and model, once for all nodes. Untried.
set -eu
cd /checkpoints
test -d verl || git clone --branch v0.9.1 --depth 1 https://github.com/volcengine/verl
python3 verl/examples/data_preprocess/gsm8k.py --local_save_dir /checkpoints/data/gsm8k
python3 -c "import transformers; transformers.pipeline('text-generation', model='Qwen/Qwen2.5-7B-Instruct')"
