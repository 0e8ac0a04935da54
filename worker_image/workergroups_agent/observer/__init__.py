"""The observer: look at Ray through the GCS alone, and report (pure). `loop` is the place to begin.

It is on no Ray node, so that nobody's code can be sent to it. What must act is the executor, in the head's container;
the observer hands it the plan and the launches that the reporter has brought.
"""
