"""Real API server, simulated machines: where the operator's loop and the agent's reporter are tried in process.

etcd, kube-apiserver, a few of Kubernetes' controllers and KubeRay are real (`control_plane`). Nodes, containers and
Ray are played (`world`), also the agent's executor, by its own pure functions. Between the code under test and the
API server stands a proxy that can do wrong (`proxy`, `faults`), and the code under test can be ended at any await
(`process`). `python -m tests.simulation` makes histories of all that from seeds (`history`), and judges them
(`oracles`).
"""
