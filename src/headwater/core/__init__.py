"""The core: what flows, the plan, the loop. It knows neither a model nor a feature by name."""
