"""`rbd sweep`: tracking errors of a controller for robots that differ from their model."""
