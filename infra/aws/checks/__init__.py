"""The checks of preflight, a module a subject.

Each has a pure judge ``(need, answer) -> rows`` over a typed answer, and a thin ``check`` that
asks AWS for the answer. None of them changes anything.
"""
