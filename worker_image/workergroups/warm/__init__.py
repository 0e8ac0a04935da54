"""Ranks that start warm: forked from a process that has already imported what their class needs.

Most of a restart is the import of Ray and torch. So while the ranks of a group run, each of their nodes keeps one more
process, the fork server. It has imported what the first rank there had imported before its constructor, as far as that
is installed in the image. It never imports the user's own code, which may change. The next process that Ray starts for
this group on this node becomes a fork of it.

- `learning`, in a rank: find out what to import, and start the server.
- `server`: import, judge whether a fork is safe (`preload`), and fork (`forked`) until it is not needed.
- `client`, in `worker_process.setup_worker`: ask the server. If it does not answer at once, the process starts cold.
- `places`: which server may serve which process. Everything that the interpreter and the libraries read from the
  environment when they start is the same, or else the process starts cold.

The server runs as the same user in the same container as the ranks. Their code can reach it, and gains nothing by that:
it could fork itself.
"""
