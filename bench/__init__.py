"""How fast this library is, compared with verl 0.9.1 and raw Ray actors: ``make bench``."""
