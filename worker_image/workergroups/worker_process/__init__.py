"""The programs that the raylet runs instead of Ray's to start a worker process."""
