"""For how long a status can be wrong: faults on a running cluster, one after the other, watched from outside.

``make truth`` runs it and writes its table into docs/truth.md.
"""
