"""What `inferledger doctor` looks at: what is there, reachable, fresh, complete and balanced, and what to do if not.

One module a concern, one function a thing to look at. The command runs them all, in the order in which evidence flows.
"""
