"""The namespaces of the operator and the quickstart."""

RELEASE = "workergroups"
OPERATOR_NAMESPACE = "workergroups-system"
DEMO_NAMESPACE = "workergroups-demo"
