"""Sealed evidence in the formats of others. Pure."""
