"""Planners that know the model, and the reference scores that give a score its scale."""

from lifedrift_jax.planning.look_ahead import look_ahead
from lifedrift_jax.planning.scores import normalized_score, references

__all__ = ["look_ahead", "normalized_score", "references"]
