"""Proof of the instrument: right captures, seeded mutations of them, and what each must give."""
