"""What identification writes: a report, a description, files for nodes."""
