"""The judge: expected answers, matching, latency, sustainability, verdict."""
