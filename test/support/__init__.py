"""What several tests share: robots, random trees, and independent oracles."""
