"""Refinements as processes of their own, so that the service stays small and survives them."""
