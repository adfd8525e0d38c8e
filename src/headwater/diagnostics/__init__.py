"""What a model says of itself: descriptions, health, history, intervals."""
