#!/bin/bash
# Says whether the report is complete.
if grep -q "total: 3" /app/report.md 2>/dev/null; then
    echo "report complete"
else
    echo "CHECK FAILED: no total"
    exit 1
fi
