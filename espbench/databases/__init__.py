"""The same work on several databases, or on several settings of one, side by side."""
