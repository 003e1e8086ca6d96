"""Computations of `dynamics_server`: named requests in, named results out, `RbdError` for invalid requests."""
