"""Pure builders of everything the operator creates: pods of trials, Jobs, the plan's ConfigMap, Trials."""
