"""Event models, hash chain, segments, seals, verification."""
