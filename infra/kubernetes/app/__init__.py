"""What runs inside the cluster: Ray Serve in front of the engine of a launch plan.

These modules are mounted into the pods as a package ``specrack_app``, beside Ray and an engine and
without Specrack: they import the standard library, Ray and what Ray brings, and each other.
"""
