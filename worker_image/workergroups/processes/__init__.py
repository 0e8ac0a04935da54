"""Every process of a Ray cluster: drivers, actors and tasks of any program; what they do, and where they pause.

Two programs answer the command line, even while all processes hang: `on_node`, in each pod, has the kernel's list of
processes and their Python stacks; `in_gcs`, in the head's pod, what Ray's control service knows. Their answers have the
rows of `tables`. `listing` puts them together, on the laptop, and says which of the processes a person means.
"""
