"""K-component distributions, which every latent structure reuses."""
