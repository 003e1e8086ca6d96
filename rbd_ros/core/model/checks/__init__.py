"""What is wrong, or unlikely, about a description or a model."""
