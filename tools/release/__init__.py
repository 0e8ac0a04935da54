"""Builds what a release consists of."""
