"""Random kills while examples/resilient-training runs: its result, its statuses, and what is held at the end."""
