"""A report, counted again by other code: nothing here is shared with what wrote it but the catalogue and the resampling.

Reading is of raw JSON, the formulas are written out again, and every number of summary.json has to be met or is named.
"""
