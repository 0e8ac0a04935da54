"""The observer: it looks at Ray through the GCS alone, and reports (pure). Start reading at `loop`.

It runs on no Ray node, so that no user can send code to it. The executor in the head's container acts; the observer
forwards to it the plan and the launches that the reporter has fetched.
"""
