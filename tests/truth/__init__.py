"""How long a status says what is no longer so: faults on a running cluster, one by one, watched from outside.

``make truth`` runs it and writes its table into docs/truth.md.
"""
