"""Agent programs behind one interface; found through the entry point group `realcli.agents`."""
