"""The command `workergroups`: it reads what a user types, calls `workergroups_client`, and prints."""
