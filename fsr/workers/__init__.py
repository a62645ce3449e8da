"""Supervised processes, containment, Ray: one protocol."""
