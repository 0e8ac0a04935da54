"""Cases drawn from seeds: odd objects and edits in any order, each with an oracle.

`python -m fuzz` plays them (`__main__`). The seed decides which kind a case is (`kinds`). Objects (`objects`) are drawn
from the CustomResourceDefinitions (`schema`) and from values that somebody may write (`values`); they go to a real API
server, next to healthy objects that must not notice them (`served`). `edits` plays sequences of legal edits.
"""
