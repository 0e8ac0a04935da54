"""The executor: observe Ray, decide (pure), act, report (pure). `loop` is the place to begin."""
