"""Wrappers; each knows the contract of `core.Env` and no family."""
