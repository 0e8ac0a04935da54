"""What the nodes of a pool have, and whether they reach each other: asked on the head, judged by who asks."""
