"""Programs that create pools of their own get bundles that ResourcePools have reserved, each bundle only once.

- `choice`: which bundles a pool of a program gets. Pure.
- `offers`: the bundles that are there, and those in which something runs.
- `claims`: what the drivers and actors of all jobs have taken, so that no bundle is handed out twice.
- `storage_units`: on which nodes verl's trainer keeps its batches.
"""
