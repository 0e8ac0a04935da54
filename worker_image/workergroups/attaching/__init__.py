"""Attach to the groups and pools of the cluster by their names."""
