"""A real three-node Kubernetes with KubeRay on a bare Debian machine, with no container engine.

It is a tool of the repository, not a part of the product: nothing in the operator imports it. It uses the
standard library alone, because it has to run before any virtual environment exists.
"""
