"""What moto 5.2.5 lacks or answers unlike AWS. ``install()`` before its server starts.

Three kinds of additions, and only the first two are claims about AWS:

- whole operations (``@operation``): every answer is checked, at every call, against the output
  shape in botocore's own service model; a member that AWS does not have is an error of the rig;
- ``fidelity``: answers of moto that AWS gives differently, and that Terraform reads as drift;
- ``settings``: what an account happens to have (quotas, prices, images), for tests to set.

The behaviour behind the shapes is a reading of AWS's documentation, not of AWS: a test that
passes here shows that our calls and Terraform's fit the API, not that AWS would grant them.
"""

from __future__ import annotations

from tests.rigs.aws.extension import budgets, ec2, eks, fidelity, fsx, iam, pricing, quotas, ssm
from tests.rigs.aws.extension.registry import OPERATIONS

MOTO_VERSION = "5.2.5"

__all__ = ["MOTO_VERSION", "OPERATIONS", "install"]


def install() -> None:
    """Put the extension into moto, once, in this process. Raises RuntimeError with another moto:
    the extension reaches into its insides."""
    import moto

    if moto.__version__ != MOTO_VERSION:
        raise RuntimeError(f"the extension is for moto {MOTO_VERSION}, not {moto.__version__}")
    for module in (budgets, ec2, eks, fsx, iam, pricing, quotas, ssm, fidelity):
        module.install()
