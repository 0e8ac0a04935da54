"""The one definition of the API: custom resources, their status, and what operator and agent exchange.

`resource_pool` and `worker_group` are the two kinds; `crd` turns them into CustomResourceDefinitions;
`plan` goes from the operator to the agent, `report` comes back; `launch` is what both call one version of a group's
ranks; `manifest` has the kinds of objects that both use.
"""
