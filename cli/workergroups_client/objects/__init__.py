"""Pools and groups by their names: statuses, waits, deletion."""
