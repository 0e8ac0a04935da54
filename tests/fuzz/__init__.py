"""Cases drawn from seeds: odd objects, files and names, and edits in any order, each with an oracle.

`python -m tests.fuzz` plays them (`__main__`). The seed decides the kind of a case (`kinds`). Objects (`objects`) are
drawn from the CustomResourceDefinitions (`schema`) and from values that users may write (`values`). They go to a
real API server, next to healthy objects that must not notice them (`served`). `files` spoils the files of the agent's
exchange, and `names` has Ray's GCS return odd records. `launches` breaks the processes of real ranks while they start.
`edits` plays sequences of legal edits.
"""
