"""A real Kubernetes cluster of three nodes with KubeRay, on a bare Debian machine without a container engine.

It is a tool of the repository, not a part of the product: the operator does not import it. It uses only the
standard library, because it must run before any virtual environment exists.
"""
