"""What the kernel knows of this node's processes and memory, and what pods are given; nothing of Ray."""
