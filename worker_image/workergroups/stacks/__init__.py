"""Stacks of ranks and what they show: who hangs, whose calls are orphaned, where an exception was raised."""
