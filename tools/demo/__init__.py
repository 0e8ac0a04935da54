"""The demo: a Kubernetes cluster with the operator, the quickstart's pool and group, a driver, and what it costs.

`make demo` runs `python3 -m tools.demo run`, which needs the standard library, kubectl and helm.
"""
