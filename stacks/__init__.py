"""CDKTF stacks. The only package that knows Terraform's constructs."""
