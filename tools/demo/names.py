"""Where the operator and the quickstart go."""

RELEASE = "workergroups"
OPERATOR_NAMESPACE = "workergroups-system"
DEMO_NAMESPACE = "workergroups-demo"
