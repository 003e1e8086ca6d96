"""Where bodies are in a motion: poses that it ends at, planes that points keep off."""
