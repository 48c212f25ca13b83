"""Kafka administration for every part: topics, their offsets, and which run made them."""
