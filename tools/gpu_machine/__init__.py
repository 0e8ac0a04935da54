"""The local cluster on a machine with NVIDIA GPUs and without a network; see README.md. It can be deleted."""
