"""From an inventory and a launch plan to configured hosts: ansible-runner, seen from outside."""
