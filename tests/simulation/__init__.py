"""Simulated machines around a real API server, to test the operator's loop and the agent's reporter in one process.

etcd, kube-apiserver, a few of Kubernetes' controllers and KubeRay are real (`control_plane`). Nodes, containers and
Ray are simulated (`world`), and so is the agent's executor, with its own pure functions. Between code under test and
API server, a proxy causes faults (`proxy`, `faults`), and the code under test can be ended at any await
(`process`). `python -m tests.simulation` draws histories of all this from seeds (`history`), and judges them
(`oracles`).
"""
