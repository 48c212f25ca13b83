"""What each component and the host use, second by second, while a run goes on."""
