"""The live view of a run: looks at it from outside, once a second, and changes nothing."""
