"""A scripted model provider: three real wires, answers from a script, faults on demand. See docs/provider-script.md."""
