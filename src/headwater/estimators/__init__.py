"""The scikit-learn interface of the models: a base and one thin file per model."""
