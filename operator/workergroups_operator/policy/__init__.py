"""Decisions: small pure functions from what is observed to a value that says what to do or what to report."""
