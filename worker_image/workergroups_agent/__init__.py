"""The agent of one RayCluster: three processes in two pods.

`reporter` talks to Kubernetes: it fetches the plan, and writes reports into the custom resources. `observer` shares a
pod and two directories with it (`exchange`): it watches Ray, reports what it sees, and forwards orders. `executor` is a
driver in the head's container: it carries out the orders that it finds in the GCS (`orders`), and answers there
(`account`).
"""
