"""AWS resources for stacks, checked at synth.

Not the prebuilt bindings, which cost 15 to 21 s and 630 MB a synth: classes for the types in
``types.txt`` only, made from the real provider's schema (``make aws-bindings``).

- ``resources.pyi``: what an editor and mypy see. Generated.
- ``schema/common.json``: what is checked at synth. Generated: arguments and outputs that both
  majors of the provider have.
- ``core``: the base classes; ``arguments``: the checks; ``stack``: whole-stack checks and tags;
  ``rules``: what no stack of ours may do; ``generate``: makes the two generated files.
"""
