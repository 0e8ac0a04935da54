"""How fast this library is, beside verl 0.9.1 and raw Ray actors: ``make bench``."""
