"""BenchmarkSweep and Trial as pydantic models, the table of outcomes, plan and lock."""
