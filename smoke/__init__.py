"""Specrack's smoke harness: is the endpoint as fast as promised, and how sure are we?"""
