"""The session's side of the wire.

`listen(path)` opens the socket, `await listener.accept(seconds)` gives the one `RunnerClient`, which is a `RunnerPort`.
"""
