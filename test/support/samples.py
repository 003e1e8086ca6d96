"""How many random samples a property is tried on: as many as it says where thorough tests run too, else fewer."""

every = True    # test/conftest.py: whether thorough tests run too


def samples(count: int, share: int = 4) -> int:
    """All of these, or one in `share`, but two at least."""
    return count if every else max(count // share, 2)
