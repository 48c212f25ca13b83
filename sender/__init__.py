"""Schedule, files, producer: replays streams into Kafka when they are due."""
