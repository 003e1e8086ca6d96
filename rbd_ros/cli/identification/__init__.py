"""The commands of identification."""
