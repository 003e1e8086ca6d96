"""`rbd sweep`: how well a controller tracks when the robot is not what its model says."""
