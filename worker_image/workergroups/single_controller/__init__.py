"""verl's single-controller programming model: one driver program calls groups of ranks as if they were one."""
