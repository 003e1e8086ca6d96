"""Identification: from recorded motions to a model that explains the efforts."""
