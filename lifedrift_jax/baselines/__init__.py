"""Baseline policies, by name."""
