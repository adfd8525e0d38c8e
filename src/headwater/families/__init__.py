"""Families: distributions of K components, which every latent structure uses."""
