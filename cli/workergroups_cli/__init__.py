"""The command `workergroups`: it parses the command line, calls `workergroups_client`, and prints the results."""
