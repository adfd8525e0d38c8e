"""The scikit-learn face of the models: a base and one thin file per model."""
