"""Latent structures over families."""
