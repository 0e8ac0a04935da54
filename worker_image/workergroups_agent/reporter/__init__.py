"""The reporter: it fetches orders from Kubernetes, and writes reports there.

Start reading at `serve`. `orders` hands plan and launches to the observer. `status` writes the observer's reports into
the custom resources. `lease` publishes whether the observer is connected, and which statuses the agent vouches for.
What they decide is in pure functions and values: `prepare`, `subtrees` and `writes`.
"""
