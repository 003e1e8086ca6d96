"""Identification of model parameters from recorded motions and efforts."""
