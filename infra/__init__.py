"""Specrack's library: what a deployment is, needs, costs, and how it is operated."""
