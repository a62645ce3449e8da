"""The contract of a kernel that has none, from its code."""
