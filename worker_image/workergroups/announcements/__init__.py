"""What agent, ranks and programs announce to each other in Ray's key-value store."""
