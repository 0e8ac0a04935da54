"""The reporter: what the executor is to do comes from Kubernetes, and what it says goes there.

`serve` is the place to begin. `orders` brings plan and launches to the executor, `status` takes its reports to the
custom resources, `lease` says whether it is connected. What they decide is in pure functions: `prepare`, `entries` and
`pulse`.
"""
