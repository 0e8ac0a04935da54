"""Why ranks have died, as errors for drivers."""
