"""What `dynamics_server` computes: requests by name in, named results out, `RbdError` where a request cannot be met."""
