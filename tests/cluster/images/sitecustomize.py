"""Prints whenever a Python starts or ends, as the site modules of some images do."""

import atexit

print("welcome to the house")
atexit.register(print, "goodbye from the house")
