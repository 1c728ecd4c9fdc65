"""How the scripted agent works, one module per task it knows."""
