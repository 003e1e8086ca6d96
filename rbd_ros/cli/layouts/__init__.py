"""Layouts of PlotJuggler and Foxglove for one robot."""
