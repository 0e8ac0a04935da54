"""Policies: small pure functions that conclude one thing each from what was observed."""
