"""The agent of one RayCluster: three processes in two pods.

`reporter` is on Kubernetes' side: it brings the plan, and takes reports to the custom resources. `observer` shares its
pod and two directories with it (`exchange`): it looks at Ray, reports, and orders. `executor` is a driver in the head's
container, which carries out the orders that it finds in the GCS (`orders`), and answers there (`account`).
"""
