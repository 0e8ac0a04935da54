"""Manifests in files, and what applying them would change."""
