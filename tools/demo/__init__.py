"""The demo: a Kubernetes, the operator on it, the quickstart's pool and group, a driver, and what it costs.

`python3 -m tools.demo run` is what `make demo` calls; it needs the standard library, kubectl and helm.
"""
