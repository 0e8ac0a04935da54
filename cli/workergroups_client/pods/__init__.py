"""What runs in the pods: processes, logs, pauses, checks."""
