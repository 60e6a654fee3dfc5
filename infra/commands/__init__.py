"""One module a group of commands: what it does, apart from parsing (``infra/cli.py``)."""
