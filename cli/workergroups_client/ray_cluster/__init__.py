"""The pool's Ray cluster: a connection to its head, Ray's own API, its actors."""
