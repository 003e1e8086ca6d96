"""One cycle of control as one compiled call: what every cycle does while nothing is unusual."""
