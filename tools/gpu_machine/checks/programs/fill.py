"""Fill a device but for 2 GiB, until standard input ends. It runs in a pod, and is no rank."""

import sys

import torch

device = torch.device(sys.argv[1])
free, _ = torch.cuda.mem_get_info(device)
held = torch.empty(free - (2 << 30), dtype=torch.uint8, device=device)
print(f"another process holds {held.numel() >> 30} GiB of {device}", flush=True)
sys.stdin.read()
