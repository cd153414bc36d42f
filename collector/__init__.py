"""Evidence in, nothing decided. May use the warehouse's schema and connection, never a mart."""
