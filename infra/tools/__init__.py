"""The programs that we start but do not own: Node, Terraform or OpenTofu, cdktf.

This package is on the path of every ``cdktf`` call, so it imports little.
"""
