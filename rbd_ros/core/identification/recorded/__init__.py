"""Reading, cleaning and filtering of recordings."""
