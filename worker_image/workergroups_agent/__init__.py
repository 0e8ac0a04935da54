"""The agent of one RayCluster: two processes that share a directory.

`executor` is on Ray's side: it makes placement groups and rank actors and says what is there. `reporter` is on
Kubernetes' side: it brings the plan and takes the reports to the custom resources. `exchange` is what they share.
"""
