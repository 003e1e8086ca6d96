"""Output files of identification: report, description, files for nodes."""
