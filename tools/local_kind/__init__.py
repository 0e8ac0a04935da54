"""What kind needs where no image can be pulled: a Docker engine, a node image, KubeRay's chart, a Python image.

All of it is built from Debian's packages and Go modules, with the parts of `local_cluster`. It is a tool of the
repository, not a part of the product. Like `local_cluster`, it uses only the standard library.
"""
