"""What users hold: a pool, a group, and jobs by their names."""
