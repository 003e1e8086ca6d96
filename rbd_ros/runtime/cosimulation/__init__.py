"""Simulators of other makers behind our topics, and what tells whether they agree with the model. No ROS here."""
