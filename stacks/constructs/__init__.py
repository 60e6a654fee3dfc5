"""The layers that every stack is made of: hosts, configure, smoke."""
