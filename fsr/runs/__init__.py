"""Runs: every run is an append-only event log from which all of its state is rebuilt."""
