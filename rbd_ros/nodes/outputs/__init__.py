"""What torque nodes publish: one file per receiver."""
