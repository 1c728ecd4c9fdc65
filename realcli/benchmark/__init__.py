"""Task bundles, index, scenario catalogue, publishing."""
