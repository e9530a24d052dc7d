"""The compiler in a process of its own, shared by all processes that were forked from one.

TVM never enters a user's process: neither its import, which holds the GIL for seconds, nor its
crashes. `client` is asked, starts the process, and starts it again; `process` is what a client has
of it; `server` is what runs there; `template` is what further ones are forked from; `service` does
the work; `tasks` and `messages` are what is said.
"""
