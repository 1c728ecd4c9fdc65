"""Who answers a judge's requests: two providers' SDKs, what was stored, recordings."""
