"""The reporter: what the executor is to do comes from Kubernetes, and what it says goes there.

`serve` is the place to begin. `orders` brings plan and launches to the observer, `status` takes its reports to the
custom resources, `lease` tells whether it is connected and what the agent vouches for. What they decide is in pure
functions and values: `prepare`, `subtrees`, `writes` and `pulse`.
"""
