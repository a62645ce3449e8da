"""Containment of code that is compiled or run on this machine: Landlock, seccomp and resource limits.

Standard library alone, so that the small programs that confine themselves start in milliseconds.
"""
