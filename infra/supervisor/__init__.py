"""Keeps the servers of one deployment running on this machine (the ``local`` site).

What systemd does on a real host, a small process does here, from the same launch plan: starts,
watches, restarts, keeps logs, stops. One process a deployment; it dies with nobody and nobody
outlives it.
"""
