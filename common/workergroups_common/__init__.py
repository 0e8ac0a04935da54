"""What all parts share apart from the API: texts, JSON within limits, pauses and turns; only the standard library.

It runs on Python 3.10, too: the library on a user's Python, and the process of a rank before anything else.
"""
