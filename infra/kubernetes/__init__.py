"""The ``scaled`` tier's Kubernetes objects, rendered in one place.

Pure: a deployment, its fleet and its launch plan in, objects as plain dicts out. Ansible applies
them (``playbooks/roles/kubernetes_objects``).
"""
