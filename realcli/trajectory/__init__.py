"""Events to exchanges, windows, anchors, triggers."""
