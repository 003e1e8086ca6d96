"""Estimation while a robot moves: external efforts, wrenches, payloads."""
